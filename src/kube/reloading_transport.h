// A Transport whose certificates may change while it is used. Certificates in files are read again
// each minute, since they are renewed there in a cluster. A credential plugin may return new ones
// at any time.
//
// Requests under way continue on their connections; new requests use the new certificates.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "http/client.h"
#include "kube/access.h"

namespace grapnel::kube {

class ReloadingTransport final : public http::Transport {
 public:
  using Factory = std::function<std::unique_ptr<http::Transport>(http::ClientOptions)>;

  struct Files {
    std::string authority;
    std::string certificate;
    std::string key;
  };
  ReloadingTransport(http::ClientOptions options, Files files, Factory factory,
                     Clock& clock = system_clock());

  Task<Result<http::Response>> send(const http::Request& request) override;
  Task<Result<http::StreamResponse>> open(const http::Request& request) override;

  void set_certificate(std::string certificate_pem, std::string key_pem);
  const http::ClientOptions& options();

 private:
  void refresh();
  void use(http::ClientOptions options);

  http::ClientOptions options_;
  Files files_;
  Factory factory_;
  Clock& clock_;
  Instant next_check_;
  std::shared_ptr<http::Transport> current_;
};

}  // namespace grapnel::kube
