// Accepts connections at a listening socket, and joins each with a connection that a Connector
// makes.
#pragma once

#include <memory>

#include "base/async.h"
#include "base/fd.h"
#include "base/result.h"

namespace grapnel::local::kubelet {

struct Connector {
  virtual ~Connector() = default;
  // The other end for a client that has just connected, non-blocking; an Error turns it away.
  virtual Task<Result<Fd>> connect(int client) = 0;
};

class Relay {
 public:
  // `listening`: non-blocking.
  Relay(Executor executor, Fd listening, std::shared_ptr<Connector> connector);
  ~Relay();  // takes no more connections; those that are open go on, unless stop() ended them
  Relay(Relay&&) noexcept;
  Relay& operator=(Relay&&) noexcept;

  Task<> stop();

 private:
  struct Impl;
  std::shared_ptr<Impl> impl_;
};

// Bound to an IPv4 address ("": all) and port, listening, non-blocking.
Result<> listen_at(int socket, const std::string& address, uint16_t port);

// Connects from the host's own network.
Task<Result<Fd>> connect_from_host(Executor executor, uint32_t address, uint16_t port);

}  // namespace grapnel::local::kubelet
