// The certificate of our webhooks: made by ourselves, kept in a Secret that all replicas share, and
// replaced long before it ends.
//
// Nobody may ever be served with a certificate that the API server does not trust yet. So the
// Secret holds two authorities, the newest and the one before; the webhook configurations are told
// of both first, and only then is the new certificate served. A replica that still serves the old
// one is trusted too.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/async.h"
#include "http/certificates.h"
#include "kube/client.h"

namespace grapnel::runtime {

inline constexpr kube::Kind kValidatingWebhook{"admissionregistration.k8s.io", "v1",
                                               "ValidatingWebhookConfiguration",
                                               "validatingwebhookconfigurations", false};
inline constexpr kube::Kind kMutatingWebhook{"admissionregistration.k8s.io", "v1",
                                             "MutatingWebhookConfiguration",
                                             "mutatingwebhookconfigurations", false};

struct WebhookCertificate {
  http::CertificateAndKey server;
  std::string authorities;  // PEM: the one that signed it, and the one before
};

// Whether it is time for another: two thirds of its life are over, or it cannot be read.
bool is_due(const WebhookCertificate& certificate, Duration life, Time now);

// One with an authority of its own, which is forgotten: nothing else is ever signed by it.
Result<WebhookCertificate> make_webhook_certificate(const std::vector<std::string>& names,
                                                    const WebhookCertificate* before, Duration life,
                                                    Time now);

// As a Secret of type kubernetes.io/tls, and back; nothing when it is not one of ours.
Json secret_of(const WebhookCertificate& certificate, std::string_view ns, std::string_view name);
std::optional<WebhookCertificate> certificate_in(const Json& secret);

struct WebhookCertificateOptions {
  std::string ns;
  std::string secret = "grapnel-webhook";
  std::string configuration = "grapnel";  // of both kinds of webhook configuration
  std::vector<std::string> names;         // by which the API server calls us
  Duration life = std::chrono::days(90);
  Duration look_every = minutes(1);
};

// Keeps the Secret, the webhook configurations and the server in step, until it is cancelled.
class WebhookCertificateKeeper {
 public:
  using Serve = std::function<Result<>(const http::CertificateAndKey& certificate)>;

  WebhookCertificateKeeper(kube::Client& client, Clock& clock, WebhookCertificateOptions options,
                           Serve serve);
  Task<> run();
  // One look at everything.
  Task<Result<>> look();

 private:
  Task<Result<WebhookCertificate>> agree();
  Task<Result<>> publish(kube::Kind kind, std::string authorities);

  kube::Client& client_;
  Clock& clock_;
  WebhookCertificateOptions options_;
  Serve serve_;
  std::string served_;  // the certificate
};

}  // namespace grapnel::runtime
