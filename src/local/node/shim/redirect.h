// The way out of the cluster's network: TCP connections of pods to addresses that are not the
// cluster's are handed to a listener of ours, which makes them again outside. So pods reach the
// world as whoever runs grapnel does, without a change to the host's network, with or without root.
#pragma once

#include <cstdint>

namespace grapnel::local::shim {

struct ClusterRange {
  const char* address;
  unsigned prefix;
};

// In the network namespace of the caller. False: this kernel does not allow it.
bool redirect_outbound(const ClusterRange* inside, unsigned count, uint16_t port);

}  // namespace grapnel::local::shim
