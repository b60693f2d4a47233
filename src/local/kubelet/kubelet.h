// The kubelet of the laptop cluster: runs the Pods that are bound to its node, and says so.
//
//   Kubelet kubelet({.executor = executor, .client = &client, .clock = &clock, .random = &random,
//                    .state_directory = dir, .work_directory = cwd});
//   api_server.set_pod_backend(&kubelet.backend());
//   auto ended = co_await kubelet.run();   // until stop()
//
// It speaks to the cluster through the Kubernetes API alone. stop() leaves pods running: the next
// run() with the same state directory finds them again. remove_all() ends them.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/async.h"
#include "base/random.h"
#include "base/result.h"
#include "kube/client.h"
#include "local/kubelet/gpus.h"
#include "local/node/pod_spec.h"

namespace grapnel::runtime {
struct Event;
}

namespace grapnel::local {

class PodBackend;

struct KubeletOptions {
  Executor executor;
  kube::Client* client = nullptr;
  Clock* clock = &system_clock();
  Random* random = nullptr;
  std::string node_name = "laptop";
  // Absolute. Pods live below `node/`, logs below `pods/`, claimed volumes below `claims/`.
  std::string state_directory;
  // Where containers start that name no directory: the user's working directory, so that `python
  // main.py` finds the script.
  std::string work_directory = "/";
  // The machine claims to have this many times the CPUs and memory that it has.
  double oversubscribe = 1;
  int64_t max_pods = 110;
  std::optional<Isolation> isolation;    // none: the best that this machine allows
  std::vector<std::string> environment;  // NAME=value, of this process; what pods inherit is chosen
  kubelet::GpuFiles gpu_files;
  std::string pod_network = "10.244.0.0/16";
  std::string dns_address = "10.96.0.10";
  // Where the API server listens on this machine's loopback, so that pods reach it as the service
  // `kubernetes`. 0: they do not.
  uint16_t api_port = 0;
  std::string api_authority_pem;   // what its certificate is checked against
  std::function<void()> on_ready;  // the node is registered and its pods are known
  std::function<void(const runtime::Event&)> on_event = {};  // what a person should know of a pod
  // Whether the logs of this Pod, which is gone, are still wanted. Without it they are not.
  std::function<bool(const Json& pod)> wants_logs = {};
};

class Kubelet {
 public:
  explicit Kubelet(KubeletOptions options);
  ~Kubelet();
  Kubelet(const Kubelet&) = delete;
  Kubelet& operator=(const Kubelet&) = delete;

  // Runs until stop(). An Error says why it cannot start.
  Task<Result<>> run();
  // Releases all pods without ending them; returns when run() is about to return.
  Task<> stop();
  // Ends every pod and removes the network: only files are left. Call it after run() has returned,
  // or instead of run().
  Task<Result<>> remove_all();

  // For a person, once run() has called on_ready: what this node cannot do, and why.
  std::vector<std::string> shortcomings() const;
  // Logs, exec and port-forward. Refuses while run() is not running.
  PodBackend& backend();
  // Call it when wants_logs may answer differently.
  void sweep_logs();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace grapnel::local
