// The client's end of a port-forward: any number of connections to ports of one pod, as SPDY
// streams inside one WebSocket. Each is two streams: its bytes, and the error that ended it.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "base/async.h"
#include "base/result.h"
#include "http/spdy.h"
#include "http/websocket.h"

namespace grapnel::kube {

class PortForward {
 public:
  // A WebSocket that Client::port_forward() opened.
  PortForward(Executor executor, std::unique_ptr<http::WebSocket> socket);
  ~PortForward();

  // Carries what comes to the connections, until the server has gone; with why. Without it running
  // nothing can be read.
  Task<Error> run();

  // Must not outlive the PortForward.
  class Connection {
   public:
    Connection(PortForward& owner, uint32_t stream) : owner_(owner), stream_(stream) {}
    ~Connection();
    Connection(const Connection&) = delete;
    Connection& operator=(const Connection&) = delete;

    // The next bytes; empty at the end. An Error: what the pod's end said (nobody listens there).
    Task<Result<std::string>> read();
    Task<Result<>> write(std::string_view data);
    Task<Result<>> finish_writing();  // the pod sees the end, and may go on answering
    Task<> reset();                   // nobody will read what is still to come

   private:
    PortForward& owner_;
    uint32_t stream_;  // of its bytes
  };
  Task<Result<std::unique_ptr<Connection>>> connect(uint16_t port);

 private:
  struct Incoming;
  Task<Result<>> take_frames();
  Task<> take(http::SpdyData data);
  Incoming* of_stream(uint32_t stream);

  Executor executor_;
  std::unique_ptr<http::WebSocket> socket_;
  http::SpdyReader reader_;
  http::SpdyWriter writer_;
  std::map<uint32_t, std::unique_ptr<Incoming>> incoming_;  // by the stream of their bytes
  uint32_t next_stream_ = 1;
  bool gone_ = false;
};

}  // namespace grapnel::kube
