// The HTTP/1.1 server: TLS, streamed answers, WebSocket and raw upgrades. One thread; each request
// has its own handler coroutine, so thousands may be open at once.
//
// Everything that arrives from outside is limited: header 64 KiB, body `max_body`, a timeout on
// each phase, and at most `max_connections`.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/async.h"
#include "base/result.h"
#include "http/message.h"
#include "http/websocket.h"

namespace grapnel::http {

// A plain two-way byte stream, after an upgrade.
class ByteStream {
 public:
  virtual ~ByteStream() = default;
  virtual Task<Result<std::string>> read() = 0;  // empty at the end
  virtual Task<Result<>> write(std::string_view data) = 0;
  virtual Task<> close() = 0;
};

// One request and the ways to answer it. Exactly one of respond(), begin(), accept_websocket() and
// upgrade() is called. A handler that answers nothing is answered for with 500; one that ends
// between begin() and finish() leaves a cut connection, so that the client knows.
class Exchange {
 public:
  virtual ~Exchange() = default;
  virtual const Request& request() const = 0;
  virtual std::string_view peer_address() const = 0;

  virtual Task<Result<>> respond(Response response) = 0;

  // A streamed answer: chunked. write() returns when the bytes are with the system, so a slow
  // reader holds back its own handler and nobody else.
  virtual Task<Result<>> begin(Response head) = 0;
  virtual Task<Result<>> write(std::string_view chunk) = 0;
  virtual Task<Result<>> finish() = 0;

  virtual Task<Result<std::unique_ptr<WebSocket>>> accept_websocket(std::string subprotocol) = 0;
  // 101 Switching Protocols with these headers, then bytes.
  virtual Task<Result<std::unique_ptr<ByteStream>>> upgrade(Headers headers) = 0;

  // Returns when the client has gone away. For handlers that wait for something to send.
  virtual Task<> closed() = 0;
};

using Handler = std::function<Task<>(Exchange&)>;

struct ServerOptions {
  std::string address = "127.0.0.1";
  uint16_t port = 0;  // 0: any free one
  // PEM texts; empty: no TLS.
  std::string certificate_pem;
  std::string key_pem;
  // Not empty: a client must show a certificate signed by one of these.
  std::string client_ca_pem;
  size_t max_body = 8UL << 20;
  size_t max_connections = 20000;
  Duration header_timeout = seconds(20);
  Duration idle_timeout = minutes(3);  // between requests of a kept-alive connection
};

// Destroying it closes everything and cancels the handlers, but does not wait for them: stop()
// does.
class Server {
 public:
  virtual ~Server() = default;
  virtual uint16_t port() const = 0;
  // New connections are served with this certificate from now on.
  virtual Result<> set_certificate(std::string certificate_pem, std::string key_pem) = 0;
  // Stops accepting, waits for handlers to end until the deadline, then closes all.
  virtual Task<> stop(Duration grace) = 0;
};

// Listens at once; an Error when the address is taken.
Result<std::unique_ptr<Server>> start_server(Executor executor, ServerOptions options,
                                             Handler handler);

}  // namespace grapnel::http
