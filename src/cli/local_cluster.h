// The laptop cluster, put together: API server, built-in controllers, our own, and the node.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "base/async.h"
#include "base/result.h"
#include "cli/paths.h"

namespace grapnel::cli {

struct LocalClusterOptions {
  ClusterPaths paths;
  std::string work_directory;  // where pods start
  double oversubscribe = 1;
  bool with_operator = true;  // otherwise only what every Kubernetes has
  uint16_t port = 0;          // 0: the one of last time, or any free one
  std::function<void(const std::string&)> on_warning = {};  // beside the log, while it starts
};

class LocalCluster {
 public:
  LocalCluster(Executor executor, Clock& clock, LocalClusterOptions options);
  ~LocalCluster();

  // Serves when it returns, and its kubeconfig is written. An Error when another process holds it.
  Task<Result<>> start();
  // Until a part of it cannot go on; with why.
  Task<Error> failed();
  // Pods go on: the next start() finds them again.
  Task<> stop();
  // Ends all pods and takes away what they had; after that stop() leaves nothing running.
  Task<> end_pods();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace grapnel::cli
