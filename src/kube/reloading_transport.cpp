#include "kube/reloading_transport.h"

#include "base/files.h"
#include "base/log.h"

namespace grapnel::kube {
namespace {

constexpr Duration kCheckEvery = minutes(1);

// Keeps the transport of a stream for as long as the stream.
class KeptStream final : public http::BodyStream {
 public:
  KeptStream(std::shared_ptr<http::Transport> transport, std::unique_ptr<http::BodyStream> inner)
      : transport_(std::move(transport)), inner_(std::move(inner)) {}
  Task<Result<std::string>> read() override { return inner_->read(); }

 private:
  std::shared_ptr<http::Transport> transport_;
  std::unique_ptr<http::BodyStream> inner_;
};

// Half of a pair that is being replaced must not be used: all are read, or none.
bool read_into(const std::string& file, std::string& pem) {
  if (file.empty()) return true;
  auto text = read_file(file);
  if (!text) {
    log_warning("keeping the old certificate", {{"file", file}, {"error", text.error().message}});
    return false;
  }
  pem = std::move(*text);
  return true;
}

}  // namespace

ReloadingTransport::ReloadingTransport(http::ClientOptions options, Files files, Factory factory,
                                       Clock& clock)
    : files_(std::move(files)),
      factory_(std::move(factory)),
      clock_(clock),
      next_check_(clock.instant() + kCheckEvery) {
  use(std::move(options));
}

Task<Result<http::Response>> ReloadingTransport::send(const http::Request& request) {
  refresh();
  return current_->send(request);  // it may go before its requests
}

Task<Result<http::StreamResponse>> ReloadingTransport::open(const http::Request& request) {
  refresh();
  const auto transport = current_;
  auto answer = co_await transport->open(request);
  if (answer && answer->body) {
    answer->body = std::make_unique<KeptStream>(transport, std::move(answer->body));
  }
  co_return answer;
}

void ReloadingTransport::set_certificate(std::string certificate_pem, std::string key_pem) {
  if (options_.client_certificate_pem == certificate_pem && options_.client_key_pem == key_pem) {
    return;
  }
  http::ClientOptions next = options_;
  next.client_certificate_pem = std::move(certificate_pem);
  next.client_key_pem = std::move(key_pem);
  use(std::move(next));
}

const http::ClientOptions& ReloadingTransport::options() {
  refresh();
  return options_;
}

void ReloadingTransport::refresh() {
  if (files_.authority.empty() && files_.certificate.empty() && files_.key.empty()) return;
  if (clock_.instant() < next_check_) return;
  next_check_ = clock_.instant() + kCheckEvery;
  http::ClientOptions next = options_;
  if (!read_into(files_.authority, next.ca_pem) ||
      !read_into(files_.certificate, next.client_certificate_pem) ||
      !read_into(files_.key, next.client_key_pem)) {
    return;
  }
  if (next.ca_pem == options_.ca_pem && next.client_key_pem == options_.client_key_pem &&
      next.client_certificate_pem == options_.client_certificate_pem) {
    return;
  }
  log_info("certificates have changed; new connections use the new ones");
  use(std::move(next));
}

void ReloadingTransport::use(http::ClientOptions options) {
  options_ = std::move(options);
  current_ = factory_(options_);
}

}  // namespace grapnel::kube
