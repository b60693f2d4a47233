// The admission webhooks of `grapnel operator`, over TLS: with certificates of our own making,
// which are renewed while it serves, or with those that somebody else keeps in a folder.
#pragma once

#include <memory>
#include <string>

#include "base/async.h"
#include "cli/commands/operator_endpoints.h"
#include "http/server.h"
#include "kube/client.h"
#include "runtime/admission.h"
#include "runtime/webhook_certificate.h"

namespace grapnel::cli {

struct WebhookServerOptions {
  Address address;
  std::string folder;  // of tls.crt and tls.key; "": our own certificates
  std::string ns;      // of the Secret and the Service
  bool strict = false;
};

class WebhookServer {
 public:
  WebhookServer(Executor executor, kube::Client& client, Clock& clock,
                WebhookServerOptions options);
  WebhookServer(const WebhookServer&) = delete;
  WebhookServer& operator=(const WebhookServer&) = delete;

  // Until it is cancelled. It listens as soon as it has a certificate.
  Task<> run();
  // Lets the answers under way end.
  Task<> stop();

 private:
  Result<> serve(const http::CertificateAndKey& certificate);
  Task<> follow_folder();

  Executor executor_;
  Clock& clock_;
  WebhookServerOptions options_;
  runtime::Admission admission_;
  runtime::WebhookCertificateKeeper keeper_;  // rests where a folder is given
  std::unique_ptr<http::Server> server_;
};

}  // namespace grapnel::cli
