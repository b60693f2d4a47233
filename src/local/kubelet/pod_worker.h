// Carries out for one pod what decide() says, one step at a time, and reports the result. It lives
// from the time the Pod object is first seen until the object and everything of the pod is gone.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "base/async.h"
#include "kube/client.h"
#include "local/kubelet/care.h"
#include "local/kubelet/container_spec.h"
#include "local/kubelet/decide.h"
#include "local/kubelet/environment.h"
#include "local/kubelet/gpus.h"
#include "local/kubelet/pod.h"
#include "local/node/pod_runner.h"

namespace grapnel::local::kubelet {

// What all workers share; it outlives them.
struct WorkerContext {
  Executor executor;
  kube::Client* client = nullptr;
  Clock* clock = nullptr;
  PodRunner* runner = nullptr;
  Gpus* gpus = nullptr;
  NodeFacts node;
  std::string state_directory;
  bool was_stopped = false;                       // on purpose, with all pods, before this run
  std::function<Variables(const Pod&)> services;  // the environment that tells of services
  std::function<void()> has_moved;                // told that a pod has got its address
  // Told of what a person should know of a pod.
  std::function<void(const Pod&, bool is_warning, std::string_view reason, std::string message)>
      emit;
};

// Of a program that runs beside the container, without its arguments.
ExecSpec exec_beside(const ContainerSpec& container);

class PodWorker : public std::enable_shared_from_this<PodWorker> {
 public:
  // `found`: what the node already runs of it.
  PodWorker(const WorkerContext& context, Pod pod, const PodStatus* found);
  PodWorker(const PodWorker&) = delete;
  PodWorker& operator=(const PodWorker&) = delete;

  // All of them note the news and return at once.
  void update(Pod pod);
  void object_is_gone();
  void take(const ContainerStatus& status);
  void sandbox_is_lost();

  Task<> run();  // until nothing is left of the pod
  // After run() has ended, however it ended.
  Task<> end_care();

  const Pod& pod() const { return pod_; }
  const std::string& address() const { return observed_.address; }
  const ContainerFacts* facts(std::string_view container) const;
  const Json* spec_of(std::string_view container) const;
  // How programs run beside a container: with the environment, directory and user it started with.
  Task<Result<ExecSpec>> beside(std::string container);
  // What a container is to run, with its volumes made. The Error's message says why it cannot run;
  // its cause has Kubernetes' reason.
  Task<Result<ContainerToRun>> prepare(std::string container, uint64_t attempt);
  void wake();
  Task<> wait_for_news();
  Task<> wait(std::optional<Time> until);
  Time now() const { return context_.clock->now(); }
  void adopt(const Json& answer);

  Task<> carry_out(Action action);
  Task<> start_sandbox();
  Task<> start_container(StartContainer start);
  Task<> stop_container(StopContainer stop);
  Task<> begin_care();
  Task<Result<HandlerTarget>> target_of(const std::string& container);
  void take_report(const std::string& container, uint64_t attempt, CareReport report);
  void emit(bool is_warning, std::string_view reason, std::string message) const;
  Task<> remove_sandbox();
  Task<> refresh_files();
  Task<> delete_pod();
  Task<> report(Json status);
  std::string last_words(const ContainerStatus& status) const;
  Trouble trouble(std::string reason, std::string message);
  std::string termination_log(std::string_view container, uint64_t attempt) const;

  const WorkerContext& context_;
  Pod pod_;
  Observed observed_;
  Signal news_;
  bool has_news_ = true;
  bool is_gone_ = false;
  unsigned failures_ = 0;            // in a row
  std::optional<Time> retry_write_;  // a write to the API server failed
  std::optional<Time> refresh_at_;   // files of volumes are compared with their sources

  // What looks after the latest attempt of a container.
  struct Care {
    uint64_t attempt = 0;
    std::optional<ExecSpec> like;  // to run programs beside it
    bool is_ours = false;          // not started by an earlier kubelet
    std::vector<Spawned> tasks;
    bool has_begun = false;
  };
  std::map<std::string, Care> care_;
};

}  // namespace grapnel::local::kubelet
