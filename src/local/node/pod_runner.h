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
  // Called with every change, including those that happened while nobody was connected. It must
  // note them and return, without calling the runner.
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
  // For a person, once: what this node cannot do, and why. Empty: nothing is missing.
  std::vector<std::string> shortcomings() const;

  // Makes its namespaces, address and shim, but no container yet. The same id again returns the
  // same pod.
  Task<Result<PodStatus>> start(PodSpec pod);
  // Returns when it runs, or says why it does not.
  Task<Result<ContainerStatus>> start_container(std::string pod, ContainerSpec container);
  // Only asks; the end is reported as a status.
  Result<> stop_container(const std::string& pod, const std::string& container, StopOptions how);
  Result<> signal_container(const std::string& pod, const std::string& container, int signal);
  // Until it has ended.
  Task<Result<ContainerStatus>> wait_for_end(std::string pod, std::string container);
  Task<Result<ExecProcess>> exec(std::string pod, ExecSpec what);
  Task<Result<ExecResult>> wait_for_exec(std::string pod, uint64_t id);
  Result<> signal_exec(const std::string& pod, uint64_t id, int signal);
  // What a container prints from now on, and its input where it has one; its terminal is all three.
  Task<Result<ExecProcess>> attach(std::string pod, std::string container);
  // The container then reads the end of its input.
  Result<> close_input(const std::string& pod, const std::string& container);
  // Kills what still runs, and removes everything of the pod except its logs.
  Task<Result<>> remove(std::string pod);

  // Removes a file or a directory on the state directory's disk; pods may have written a lot there.
  Task<Result<>> discard(std::string path);

  // Finds what an earlier runner left in the state directory. Call it once, before anything else.
  Task<Result<std::vector<PodStatus>>> recover();
  std::vector<PodStatus> pods() const;

  // To an address of the cluster: a pod's, or any in its network.
  Task<Result<Fd>> connect(std::string address, uint16_t port);
  ClusterNetwork* network();  // none without namespaces
  // The directory of a pod, for volumes and the like. It is deleted with the pod.
  std::string pod_directory(const std::string& pod) const;

  // Removes all pods and the network: nothing of the cluster is left but the state directory.
  Task<Result<>> shut_down();

 private:
  struct Impl;
  explicit PodRunner(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace grapnel::local
