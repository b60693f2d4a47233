// Takes UDP datagrams that arrive at an address of the cluster's network, passes them on to where a
// DatagramConnector leads, and passes the answers back.
//
// A sender and the address it sends to form a flow with two sockets of its own: one plays the
// address that the sender speaks to, the other speaks to the real destination. Both are connected,
// so nobody else can interfere. A flow ends when it has been silent for a while, or at an error,
// such as a port on which nobody listens. What is sent after that starts a new flow.
#pragma once

#include <netinet/in.h>

#include <memory>
#include <string>

#include "base/async.h"
#include "base/fd.h"
#include "base/result.h"
#include "local/node/network.h"

namespace grapnel::local::kubelet {

struct DatagramConnector {
  virtual ~DatagramConnector() = default;
  // A connected socket for what is sent to `wanted`, non-blocking; after an Error it is dropped.
  virtual Task<Result<Fd>> connect(const sockaddr_in& wanted) = 0;
};

class DatagramRelay {
 public:
  struct Options {
    Executor executor;
    Clock& clock;
    ClusterNetwork& network;  // outlives the relay, or stop() comes first
    std::shared_ptr<DatagramConnector> connector;
  };
  // At an address ("": all) and port of the cluster's network.
  static Task<Result<DatagramRelay>> open(Options options, std::string address, uint16_t port);
  ~DatagramRelay();
  DatagramRelay(DatagramRelay&&) noexcept;
  DatagramRelay& operator=(DatagramRelay&&) noexcept;

  Task<> stop();

 private:
  struct Impl;
  explicit DatagramRelay(std::shared_ptr<Impl> impl) : impl_(std::move(impl)) {}
  std::shared_ptr<Impl> impl_;
};

}  // namespace grapnel::local::kubelet
