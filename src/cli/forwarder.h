// Ports of this machine that lead to ports of a pod.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "base/async.h"
#include "base/result.h"
#include "kube/port_forward.h"

namespace grapnel::cli {

struct PortPair {
  uint16_t local = 0;  // 0: any free one
  uint16_t remote = 0;
  bool operator==(const PortPair&) const = default;
};
// "8080:80"; "80" for the same on both sides; ":80" for any free one here.
Result<PortPair> parse_port_pair(std::string_view text);

class Forwarder {
 public:
  // The PortForward must be run() by the caller and outlive this. What goes wrong with a single
  // connection is said through `note`.
  Forwarder(Executor executor, kube::PortForward& forward,
            std::function<void(std::string_view)> note);
  ~Forwarder();

  // On the loopback address; the port that was taken.
  Result<uint16_t> listen(PortPair ports);
  // Ends the connections, and waits for that.
  Task<> stop();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace grapnel::cli
