// TLS on a Channel, using OpenSSL directly: its buffers are released while nothing flows, which
// Asio's stream classes cannot do. Inside http/ only.
#pragma once

#include <openssl/ssl.h>

#include <memory>
#include <string>

#include "base/result.h"
#include "http/channel.h"

namespace grapnel::http {

using TlsContext = std::shared_ptr<SSL_CTX>;

struct ServerTlsOptions {
  std::string certificate_pem;  // the chain, the server's own first
  std::string key_pem;
  std::string client_ca_pem;  // not empty: a client must show a certificate of these authorities
};
Result<TlsContext> make_server_context(const ServerTlsOptions& options);

// The server's end. handshake() first.
std::shared_ptr<Channel> make_tls_channel(const Executor& executor, int fd,
                                          const TlsContext& context);

// OpenSSL's own words for what went wrong last.
std::string last_tls_problem();

}  // namespace grapnel::http
