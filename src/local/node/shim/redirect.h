// The way out of the cluster's network. TCP connections and UDP datagrams of pods to addresses
// outside the cluster are redirected to sockets of ours, which make them again from outside. So
// pods reach the world as the user who runs grapnel does, with no change to the host's network,
// with or without root.
#pragma once

#include <cstdint>

namespace grapnel::local::shim {

struct ClusterRange {
  const char* address;
  unsigned prefix;
};

// In the network namespace of the caller. False: this kernel does not allow it.
bool redirect_connections(const ClusterRange* inside, unsigned count, uint16_t port);
// They keep their destination: the socket at `port` is transparent, and a route must lead packets
// for outside the cluster to this machine.
bool redirect_datagrams(const ClusterRange* inside, unsigned count, uint16_t port);

}  // namespace grapnel::local::shim
