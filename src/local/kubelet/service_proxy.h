// Cluster IPs: a connection or datagram to a service's address and port, from inside the cluster's
// network, reaches one of its pods.
//
// The addresses are on the cluster's bridge, so nothing outside this machine can reach them.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/async.h"
#include "local/kubelet/names.h"
#include "local/node/pod_runner.h"

namespace grapnel::local::kubelet {

class ServiceProxy {
 public:
  ServiceProxy(Executor executor, Clock& clock, PodRunner& runner);
  ~ServiceProxy();

  // From now on serves these routes and no others. Open connections stay.
  Task<> set(std::vector<Route> routes);
  // Ends everything. Call it before the runner is destroyed.
  Task<> stop();

 private:
  struct Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace grapnel::local::kubelet
