// Carries out for one pod what decide() says, one step at a time, and reports how it goes. It lives
// from the first sight of the Pod object until the object is gone and nothing of the pod is left.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "base/async.h"
#include "kube/client.h"
#include "local/kubelet/container_spec.h"
#include "local/kubelet/decide.h"
#include "local/kubelet/environment.h"
#include "local/kubelet/pod.h"
#include "local/node/pod_runner.h"

namespace grapnel::local::kubelet {

// What all workers share; it outlives them.
struct WorkerContext {
  Executor executor;
  kube::Client* client = nullptr;
  Clock* clock = nullptr;
  PodRunner* runner = nullptr;
  NodeFacts node;
  std::string state_directory;
};

class PodWorker {
 public:
  // `found`: what the node already runs of it.
  PodWorker(const WorkerContext& context, Pod pod, const PodStatus* found);
  PodWorker(const PodWorker&) = delete;
  PodWorker& operator=(const PodWorker&) = delete;

  // All three note the news and return at once.
  void update(Pod pod);
  void object_is_gone();
  void take(const ContainerStatus& status);
  void sandbox_is_lost();

  Task<> run();  // until nothing is left of the pod

  const Pod& pod() const { return pod_; }
  const std::string& address() const { return observed_.address; }
  const ContainerFacts* facts(std::string_view container) const;
  // What a container is to run, with its volumes made. The Error's message says why it cannot, its
  // cause's reason how Kubernetes calls that.
  Task<Result<ContainerToRun>> prepare(std::string container, uint64_t attempt);

 private:
  void wake();
  Task<> wait_for_news();
  Task<> wait(std::optional<Time> until);
  Time now() const { return context_.clock->now(); }
  void adopt(const Json& answer);

  Task<> carry_out(Action action);
  Task<> start_sandbox();
  Task<> start_container(StartContainer start);
  Task<> remove_sandbox();
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
};

}  // namespace grapnel::local::kubelet
