#include "cli/webhook_server.h"

#include "base/files.h"
#include "base/log.h"
#include "controllers/admission.h"

namespace grapnel::cli {
namespace {

constexpr Duration kFolderEvery = seconds(10);

// By the Service's names, and by the address itself where it is one that others can use.
std::vector<std::string> names_of(const std::string& ns, const std::string& host) {
  const std::string name = fmt::format("grapnel-webhook.{}", ns);
  std::vector<std::string> names{name + ".svc", name + ".svc.cluster.local", name};
  if (host != "0.0.0.0" && host != "::" && !host.empty()) names.push_back(host);
  return names;
}

}  // namespace

WebhookServer::WebhookServer(Executor executor, kube::Client& client, Clock& clock,
                             WebhookServerOptions options)
    : executor_(std::move(executor)),
      clock_(clock),
      options_(std::move(options)),
      keeper_(client, clock,
              {.ns = options_.ns, .names = names_of(options_.ns, options_.address.host)},
              [this](const http::CertificateAndKey& certificate) { return serve(certificate); }) {
  controllers::add_admissions(admission_, options_.strict);
}

Task<> WebhookServer::run() {
  return options_.folder.empty() ? keeper_.run() : follow_folder();
}

Task<> WebhookServer::stop() {
  if (server_) co_await server_->stop(seconds(5));
}

Result<> WebhookServer::serve(const http::CertificateAndKey& certificate) {
  if (server_) return server_->set_certificate(certificate.certificate_pem, certificate.key_pem);
  auto started = http::start_server(executor_,
                                    {.address = options_.address.host,
                                     .port = options_.address.port,
                                     .certificate_pem = certificate.certificate_pem,
                                     .key_pem = certificate.key_pem},
                                    admission_.handler());
  if (!started) return fail(started.error());
  server_ = std::move(*started);
  log_info("webhooks are served", {{"port", server_->port()}});
  return {};
}

Task<> WebhookServer::follow_folder() {
  std::string served;
  while (true) {
    const auto certificate = read_file(options_.folder + "/tls.crt");
    const auto key = read_file(options_.folder + "/tls.key");
    if (!certificate || !key) {
      log_warning("no certificate for the webhooks", {{"folder", options_.folder}});
    } else if (*certificate != served) {
      const auto serving = serve({.certificate_pem = *certificate, .key_pem = *key});
      if (serving) served = *certificate;
      if (!serving) log_warning("webhooks are not served", {{"error", serving.error().message}});
    }
    co_await clock_.sleep(kFolderEvery);
  }
}

}  // namespace grapnel::cli
