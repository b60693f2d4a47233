// WebSocket, both ends. exec, attach and port-forward use it.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/async.h"
#include "base/result.h"
#include "http/client.h"
#include "http/message.h"

namespace grapnel::http {

class WebSocket {
 public:
  virtual ~WebSocket() = default;
  struct Message {
    bool binary = true;
    bool closed = false;  // the other end said goodbye; nothing follows
    std::string data;
  };
  virtual Task<Result<Message>> read() = 0;
  virtual Task<Result<>> write(std::string_view data, bool binary = true) = 0;
  virtual Task<> close() = 0;
  virtual std::string_view subprotocol() const = 0;
};

// As a client: wss:// or https:// URL in request.target, offers these subprotocols in order. A
// refusal is an Error with the HTTP code and the answer's body as message.
Task<Result<std::unique_ptr<WebSocket>>> connect_websocket(Executor executor, ClientOptions options,
                                                           Request request,
                                                           std::vector<std::string> subprotocols);

}  // namespace grapnel::http
