// The way out for pods: what they connect to beyond the cluster, we connect to for them (TCP).
#pragma once

#include <memory>
#include <optional>

#include "base/async.h"
#include "base/result.h"
#include "local/kubelet/relay.h"
#include "local/node/network.h"

namespace grapnel::local::kubelet {

class Outbound {
 public:
  explicit Outbound(Executor executor) : executor_(executor) {}
  Task<Result<>> serve(ClusterNetwork& network);
  Task<> stop();

 private:
  Executor executor_;
  std::optional<Relay> relay_;
};

}  // namespace grapnel::local::kubelet
