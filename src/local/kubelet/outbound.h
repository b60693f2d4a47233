// What pods send outside the cluster: we send it for them.
#pragma once

#include <optional>

#include "base/async.h"
#include "base/result.h"
#include "local/kubelet/datagram_relay.h"
#include "local/kubelet/relay.h"
#include "local/node/network.h"

namespace grapnel::local::kubelet {

class Outbound {
 public:
  Outbound(Executor executor, Clock& clock) : executor_(executor), clock_(clock) {}
  // Serves TCP and UDP as far as the network supports them.
  Task<Result<>> serve(ClusterNetwork& network);
  Task<> stop();

 private:
  Task<Result<>> serve_connections(ClusterNetwork& network);
  Task<Result<>> serve_datagrams(ClusterNetwork& network);
  Executor executor_;
  Clock& clock_;
  std::optional<Relay> connections_;
  std::optional<DatagramRelay> datagrams_;
};

}  // namespace grapnel::local::kubelet
