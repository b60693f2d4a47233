#include "runtime/webhook_certificate.h"

#include "base/log.h"
#include "base/strings.h"

namespace grapnel::runtime {
namespace {

// Clocks of nodes differ a little.
constexpr Duration kLeeway = hours(1);
constexpr std::string_view kEndOfCertificate = "-----END CERTIFICATE-----\n";

std::string first_certificate(std::string_view pem) {
  const size_t end = pem.find(kEndOfCertificate);
  return end == std::string_view::npos ? std::string()
                                       : std::string(pem.substr(0, end + kEndOfCertificate.size()));
}

std::string decoded(const Json& secret, std::string_view key) {
  return base64_decode(string_or(at(secret, "data", key))).value_or("");
}

// The webhooks whose API server does not know these authorities yet, by name.
JsonArray outdated_hooks(const Json& configuration, const std::string& bundle) {
  JsonArray hooks;
  const Json* all = at(configuration, "webhooks");
  if (all == nullptr || !all->is_array()) return hooks;
  for (const Json& hook : all->get_array()) {
    if (string_or(at(hook, "clientConfig", "caBundle")) == bundle) continue;
    hooks.push_back(JsonObject{{"name", string_or(at(hook, "name"))},
                               {"clientConfig", JsonObject{{"caBundle", bundle}}}});
  }
  return hooks;
}

}  // namespace

bool is_due(const WebhookCertificate& certificate, Duration life, Time now) {
  const auto end = http::certificate_expiry(certificate.server.certificate_pem);
  return !end || *end - now < life / 3;
}

Result<WebhookCertificate> make_webhook_certificate(const std::vector<std::string>& names,
                                                    const WebhookCertificate* before, Duration life,
                                                    Time now) {
  const auto authority = http::make_authority({.common_name = "grapnel webhook authority",
                                               .not_before = now - kLeeway,
                                               .not_after = now + life});
  if (!authority) return fail(authority.error());
  auto server = http::make_certificate(*authority, {.common_name = "grapnel webhook",
                                                    .names = names,
                                                    .not_before = now - kLeeway,
                                                    .not_after = now + life});
  if (!server) return fail(server.error());
  std::string authorities = authority->certificate_pem;
  if (before != nullptr) authorities += first_certificate(before->authorities);
  return WebhookCertificate{std::move(*server), std::move(authorities)};
}

Json secret_of(const WebhookCertificate& certificate, std::string_view ns, std::string_view name) {
  return JsonObject{
      {"apiVersion", "v1"},
      {"kind", "Secret"},
      {"type", "kubernetes.io/tls"},
      {"metadata", JsonObject{{"name", name}, {"namespace", ns}}},
      {"data", JsonObject{{"ca.crt", base64_encode(certificate.authorities)},
                          {"tls.crt", base64_encode(certificate.server.certificate_pem)},
                          {"tls.key", base64_encode(certificate.server.key_pem)}}}};
}

std::optional<WebhookCertificate> certificate_in(const Json& secret) {
  WebhookCertificate found{.server = {.certificate_pem = decoded(secret, "tls.crt"),
                                      .key_pem = decoded(secret, "tls.key")},
                           .authorities = decoded(secret, "ca.crt")};
  if (found.server.certificate_pem.empty() || found.server.key_pem.empty() ||
      found.authorities.empty()) {
    return std::nullopt;
  }
  return found;
}

WebhookCertificateKeeper::WebhookCertificateKeeper(kube::Client& client, Clock& clock,
                                                   WebhookCertificateOptions options, Serve serve)
    : client_(client), clock_(clock), options_(std::move(options)), serve_(std::move(serve)) {}

Task<> WebhookCertificateKeeper::run() {
  while (true) {
    const auto looked = co_await look();
    if (!looked) {
      log_warning("the webhook's certificate could not be looked after",
                  {{"error", looked.error().message}});
    }
    co_await clock_.sleep(looked ? options_.look_every : seconds(2));
  }
}

Task<Result<>> WebhookCertificateKeeper::look() {
  const auto certificate = co_await agree();
  if (!certificate) co_return fail(certificate.error());
  for (const kube::Kind& kind : {kValidatingWebhook, kMutatingWebhook}) {
    auto published = co_await publish(kind, certificate->authorities);
    if (!published) co_return published;
  }
  if (certificate->server.certificate_pem == served_) co_return Result<>{};
  auto serving = serve_(certificate->server);
  if (serving) served_ = certificate->server.certificate_pem;
  co_return serving;
}

// What stands in the Secret, after it was renewed where that is due. Of several replicas that do so
// at once the first wins, and the others read what it wrote.
Task<Result<WebhookCertificate>> WebhookCertificateKeeper::agree() {
  const kube::Where where{.ns = options_.ns, .name = options_.secret};
  auto found = co_await client_.get(kube::kinds::kSecret, where);
  if (!found && !found.error().is(Reason::kNotFound)) {
    co_return fail_in("reading the Secret " + options_.secret, found.error());
  }
  const auto current = found ? certificate_in(*found) : std::nullopt;
  if (current && !is_due(*current, options_.life, clock_.now())) co_return *current;
  const auto fresh = make_webhook_certificate(options_.names, current ? &*current : nullptr,
                                              options_.life, clock_.now());
  if (!fresh) co_return fail(fresh.error());
  Json secret = secret_of(*fresh, options_.ns, options_.secret);
  Result<Json> written;
  if (found) {
    JsonObject body{{"data", *at(secret, "data")}};
    body["metadata"] =
        JsonObject{{"resourceVersion", string_or(at(*found, "metadata", "resourceVersion"))}};
    written = co_await client_.patch(kube::kinds::kSecret, where, kube::PatchType::kMerge,
                                     std::move(body));
  } else {
    written = co_await client_.create(kube::kinds::kSecret, std::move(secret));
  }
  if (!written) co_return fail_in("writing the Secret " + options_.secret, written.error());
  log_info("a new certificate for the webhooks");
  co_return *fresh;
}

// A configuration that is not there is no fault: whoever runs us may not want webhooks of a kind.
Task<Result<>> WebhookCertificateKeeper::publish(kube::Kind kind, std::string authorities) {
  const kube::Where where{.name = options_.configuration};
  const auto found = co_await client_.get(kind, where);
  if (!found && found.error().is(Reason::kNotFound)) co_return Result<>{};
  if (!found) co_return fail_in("reading the webhook configuration", found.error());
  JsonArray hooks = outdated_hooks(*found, base64_encode(authorities));
  if (hooks.empty()) co_return Result<>{};
  JsonObject body{{"webhooks", std::move(hooks)}};
  const auto patched =
      co_await client_.patch(kind, where, kube::PatchType::kStrategic, std::move(body));
  if (!patched) co_return fail_in("writing the webhook configuration", patched.error());
  co_return Result<>{};
}

}  // namespace grapnel::runtime
