// The HTTP client: keep-alive pools, TLS, proxies from the environment, streamed answers.
//
// Transport is an interface: programs use the one built on libcurl, the simulator has its own. An
// answer of any status is a success here. An Error means that no complete answer came, and says
// whether the request may have taken effect (`ambiguous`).
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "base/async.h"
#include "base/result.h"
#include "http/message.h"

namespace grapnel::http {

// The body of an answer, piece by piece as it comes. Destroying it closes the connection.
class BodyStream {
 public:
  virtual ~BodyStream() = default;
  // The next piece; empty at the end of a whole body. A body cut short is a Transport error.
  virtual Task<Result<std::string>> read() = 0;
};

struct StreamResponse {
  int status = 0;
  Headers headers;
  std::unique_ptr<BodyStream> body;
};

class Transport {
 public:
  virtual ~Transport() = default;
  // The request has to stay until the task is done: thousands under way hold their bodies once.
  virtual Task<Result<Response>> send(const Request& request) = 0;
  // Returns when the head of the answer is there.
  virtual Task<Result<StreamResponse>> open(const Request& request) = 0;
};

// Certificates and keys are PEM texts, not files; empty means: none.
struct ClientOptions {
  std::string ca_pem;  // instead of the system's authorities
  std::string client_certificate_pem;
  std::string client_key_pem;
  bool insecure_skip_verify = false;
  std::string server_name;        // for SNI and verification instead of the URL's host
  std::string proxy_url;          // instead of the environment's
  size_t max_body = 512UL << 20;  // a longer body of send() is refused
  size_t max_connections = 64;    // of the pool; streams have their own
};

// Over libcurl's multi-socket interface on this executor, HTTP/1.1.
std::unique_ptr<Transport> make_transport(Executor executor, ClientOptions options);

}  // namespace grapnel::http
