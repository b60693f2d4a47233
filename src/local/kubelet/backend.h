// What users ask of running pods: logs, exec, attach, port-forward and top, served from this node.
#pragma once

#include "base/async.h"
#include "local/apiserver/pod_backend.h"
#include "local/kubelet/kept_logs.h"
#include "local/kubelet/log_watch.h"
#include "local/kubelet/pod_directory.h"
#include "local/kubelet/usage.h"
#include "local/node/pod_runner.h"

namespace grapnel::local::kubelet {

class Backend final : public PodBackend {
 public:
  struct Options {
    Executor executor;
    Clock* clock = nullptr;
    PodDirectory* pods = nullptr;
    std::string state_directory;
    const KeptLogs* kept = nullptr;
  };
  explicit Backend(Options options)
      : options_(std::move(options)),
        sampler_(*options_.clock),
        watch_(options_.executor, *options_.clock) {}
  // Without a runner everything is refused.
  void set_runner(PodRunner* runner) {
    runner_ = runner;
    containers_changed();
  }
  // One of them has ended, or its pod is gone: so may its log.
  void containers_changed() { watch_.wake_all(); }

  Task<Result<>> logs(PodLogRequest request, http::Exchange& exchange) override;
  Task<Result<PodExit>> exec(PodExecRequest request, PodStreams& streams) override;
  Task<Result<std::unique_ptr<PodConnection>>> connect(std::string ns, std::string pod,
                                                       uint16_t port) override;
  Task<std::vector<PodUsage>> usage(std::vector<PodName> pods) override;
  std::vector<Json> kept_logs() override { return options_.kept->all(); }

 private:
  struct Target {
    std::shared_ptr<PodWorker> worker;
    std::string container;
  };
  Result<Target> find(const std::string& ns, const std::string& pod,
                      const std::string& container) const;
  Result<std::string> log_file(const PodLogRequest& request) const;
  bool is_still_written(const PodLogRequest& request, const std::string& path) const;
  Task<Result<PodExit>> attach(PodExecRequest request, PodStreams& streams);

  Options options_;
  PodRunner* runner_ = nullptr;
  UsageSampler sampler_;
  LogWatch watch_;
};

}  // namespace grapnel::local::kubelet
