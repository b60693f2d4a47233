// Takes datagrams (UDP) that come to an address of the cluster's network, passes them on to where a
// DatagramConnector leads, and the answers back.
//
// A sender and an address it sends to are a flow, with two sockets of its own: one that is to the
// sender what it thinks it speaks to, and one to what it does speak to. Both are connected, so
// nobody else gets a word in. A flow ends when it has been silent for a while, or at an error, such
// as a port that nobody listens at; what is sent after that begins another.
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
