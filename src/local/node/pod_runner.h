// Runs pods as isolated processes of this machine. The kubelet says what to run; this runs it and
// reports what happened. One runner for each state directory.
//
// A pod is started first, then its containers, one by one, as the kubelet decides. The pod's shim
// holds everything that runs. When this program ends or is killed, pods continue, and recover()
// finds them again with what happened meanwhile. Only remove() ends a pod.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/async.h"
#include "base/fd.h"
#include "base/result.h"
#include "local/node/network.h"
#include "local/node/pod_spec.h"

namespace grapnel::local {

struct PodRunnerOptions {
  Executor executor;
  std::string state_directory;         // absolute; one that pods do not need to see
  std::optional<Isolation> isolation;  // none: the best that this machine allows
  std::string pod_network = "10.244.0.0/16";
  std::string dns_address = "10.96.0.10";
  // Told of every change, also of those that happened while nobody was connected. It notes them and
  // returns: it must not call the runner.
  std::function<void(const std::string& pod, const ContainerStatus&)> on_status;
  // The shim of a pod died: what ran in it is gone.
  std::function<void(const std::string& pod)> on_lost;
};

struct PodStatus {
  std::string id;
  std::string address;
  std::string note;
  bool is_lost = false;
  std::map<std::string, ContainerStatus> containers;  // by name; the latest attempt
};

struct StopOptions {
  Duration grace = seconds(30);
  int signal = 15;
  bool whole_group = true;  // not only the container's first process
};

struct ExecProcess {
  uint64_t id = 0;
  Fd input;  // for a terminal: also what it prints, and where its size is set
  Fd output;
  Fd error;
};

struct ExecResult {
  int exit_code = 0;
  int exit_signal = 0;
};

class PodRunner {
 public:
  static Task<Result<std::unique_ptr<PodRunner>>> open(PodRunnerOptions options);
  ~PodRunner();

  Isolation isolation() const;
  // For a person, once: what is less than on a real node, and why. Empty: nothing.
  std::vector<std::string> shortcomings() const;

  // Its namespaces, address and shim; no container yet. Again for the same id: the same pod.
  Task<Result<PodStatus>> start(PodSpec pod);
  // Returns when it runs, or with why it does not.
  Task<Result<ContainerStatus>> start_container(std::string pod, ContainerSpec container);
  // Asks; the end comes as a status.
  Result<> stop_container(const std::string& pod, const std::string& container, StopOptions how);
  Result<> signal_container(const std::string& pod, const std::string& container, int signal);
  // Until it has ended.
  Task<Result<ContainerStatus>> wait_for_end(std::string pod, std::string container);
  Task<Result<ExecProcess>> exec(std::string pod, ExecSpec what);
  Task<Result<ExecResult>> wait_for_exec(std::string pod, uint64_t id);
  Result<> signal_exec(const std::string& pod, uint64_t id, int signal);
  // What a container prints from now on, and its input where it has one; its terminal is all three.
  Task<Result<ExecProcess>> attach(std::string pod, std::string container);
  // It reads the end of its input.
  Result<> close_input(const std::string& pod, const std::string& container);
  // Kills what still runs, and takes away all that the pod had but its logs.
  Task<Result<>> remove(std::string pod);

  // Takes away a file or a directory of the state directory's disk; what pods wrote there may be
  // much.
  Task<Result<>> discard(std::string path);

  // What an earlier runner left in the state directory. Once, before anything else.
  Task<Result<std::vector<PodStatus>>> recover();
  std::vector<PodStatus> pods() const;

  // To an address of the cluster: a pod's, or any in its network.
  Task<Result<Fd>> connect(std::string address, uint16_t port);
  ClusterNetwork* network();  // none without namespaces
  // The directory of a pod, for volumes and such. It goes with the pod.
  std::string pod_directory(const std::string& pod) const;

  // Removes all pods and the network: nothing of the cluster is left but the state directory.
  Task<Result<>> shut_down();

 private:
  struct Impl;
  explicit PodRunner(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace grapnel::local
