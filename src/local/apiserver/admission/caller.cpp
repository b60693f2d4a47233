#include "local/apiserver/admission/caller.h"

#include <fmt/format.h>

#include "local/apiserver/api.h"

namespace grapnel::local {
namespace {

// A review is small; anything larger than this is not an answer.
constexpr size_t kMostBody = 4UL << 20;

struct Place {
  std::string url;
  std::string server_name;  // whose certificate is expected, where the URL does not say it
};

// The port of a service on its pods, as Endpoints give it.
const Json* port_of(const Json& subset, std::string_view port_name) {
  const Json* ports = find(subset, "ports");
  if (ports == nullptr || !ports->is_array()) return nullptr;
  for (const Json& port : ports->as_array()) {
    if (string_or(find(port, "name")) == port_name) return find(port, "port");
  }
  return nullptr;
}

std::string name_of_port(const Json& service, int64_t number) {
  const Json* ports = at(service, "spec", "ports");
  if (ports == nullptr || !ports->is_array()) return "";
  for (const Json& port : ports->as_array()) {
    if (int_or(find(port, "port")) == number) return std::string(string_or(find(port, "name")));
  }
  return "";
}

Result<Place> place_of_service(const Api& api, const WebhookService& wanted) {
  const std::string key = key_of(wanted.ns, wanted.name);
  const ObjectPtr stored = api.store.get("services", key);
  const ObjectPtr backends = api.store.get("endpoints", key);
  if (!stored) return fail(Reason::kNotFound, "service \"{}\" not found", wanted.name);
  const auto service = parse_json(stored->json);
  const auto endpoints = parse_json(backends ? backends->json : "{}");
  if (!service || !endpoints) return fail(Reason::kInternalError, "unreadable service");
  const std::string port_name = name_of_port(*service, wanted.port);
  const Json* subsets = find(*endpoints, "subsets");
  if (subsets != nullptr && subsets->is_array()) {
    for (const Json& subset : subsets->as_array()) {
      const Json* addresses = find(subset, "addresses");
      const Json* port = port_of(subset, port_name);
      if (port == nullptr || addresses == nullptr || !addresses->is_array()) continue;
      if (addresses->as_array().empty()) continue;
      return Place{.url = fmt::format("https://{}:{}{}",
                                      string_or(find(addresses->as_array().front(), "ip")),
                                      int_or(port), wanted.path),
                   .server_name = fmt::format("{}.{}.svc", wanted.name, wanted.ns)};
    }
  }
  return fail(Reason::kServiceUnavailable, "no endpoints available for service \"{}\"",
              wanted.name);
}

}  // namespace

http::Transport& WebhookCaller::transport(const std::string& ca_pem,
                                          const std::string& server_name) {
  auto& place = transports_[server_name + "\n" + ca_pem];
  if (!place) {
    place = http::make_transport(
        executor_, {.ca_pem = ca_pem, .server_name = server_name, .max_body = kMostBody});
  }
  return *place;
}

Task<Result<Json>> WebhookCaller::call(Api& api, Webhook webhook, Json review) {
  if (!webhook.resident) co_return co_await send(api, std::move(webhook), std::move(review));
  auto response = residents_->respond(webhook.service->path, *find(review, "request"));
  if (!response) co_return fail(Reason::kNotFound, "no review at {}", webhook.service->path);
  co_return std::move(*response);
}

Task<Result<Json>> WebhookCaller::send(Api& api, Webhook webhook, Json review) {
  Place place{.url = webhook.url};
  if (webhook.service) {
    auto found = place_of_service(api, *webhook.service);
    if (!found) co_return fail(found.error());
    place = std::move(*found);
  }
  const std::string_view query = place.url.find('?') == std::string::npos ? "?" : "&";
  http::Request request{
      .method = "POST",
      .target =
          fmt::format("{}{}timeout={}s", place.url, query,
                      std::chrono::duration_cast<std::chrono::seconds>(webhook.timeout).count()),
      .headers = {{"content-type", "application/json"}, {"accept", "application/json"}},
      .body = to_text(review),
      .timeout = webhook.timeout};
  auto answer = co_await transport(webhook.ca_pem, place.server_name).send(request);
  if (!answer) co_return fail(answer.error());
  if (answer->status != 200) {
    co_return fail(Reason::kServiceUnavailable, "the server answered with status {}",
                   answer->status);
  }
  auto body = parse_json(answer->body);
  if (!body) co_return fail(body.error());
  const Json* response = find(*body, "response");
  if (string_or(find(*body, "kind")) != "AdmissionReview" ||
      string_or(find(*body, "apiVersion")) != "admission.k8s.io/v1" || response == nullptr ||
      !response->is_object()) {
    co_return fail(Reason::kDecode,
                   "expected webhook response of admission.k8s.io/v1, Kind=AdmissionReview, got "
                   "{}, Kind={}",
                   string_or(find(*body, "apiVersion")), string_or(find(*body, "kind")));
  }
  if (string_or(find(*response, "uid")) != string_or(at(review, "request", "uid"))) {
    co_return fail(Reason::kDecode, "expected response.uid={}, got {}",
                   string_or(at(review, "request", "uid")), string_or(find(*response, "uid")));
  }
  co_return Json(*response);
}

}  // namespace grapnel::local
