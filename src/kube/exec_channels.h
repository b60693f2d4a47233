// The channels of v5.channel.k8s.io and v4.channel.k8s.io, which exec and attach speak over a
// WebSocket: the first byte of each message says which stream the rest belongs to.
#pragma once

namespace grapnel::kube {

enum class ExecChannel : unsigned char {
  kInput = 0,
  kOutput = 1,
  kError = 2,
  kStatus = 3,   // a Status: how the command ended
  kResize = 4,   // {"Width":80,"Height":25}
  kClose = 255,  // followed by the channel that is over; since v5
};

}  // namespace grapnel::kube
