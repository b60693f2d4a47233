#include "local/apiserver/admission/webhook.h"

#include <algorithm>

#include "base/strings.h"

namespace grapnel::local {
namespace {

std::vector<std::string> texts(const Json& object, const char* key) {
  std::vector<std::string> result;
  const Json* list = find(object, key);
  if (list == nullptr || !list->is_array()) return result;
  for (const Json& one : list->as_array()) result.emplace_back(string_or(&one));
  return result;
}

bool contains(const std::vector<std::string>& list, std::string_view wanted) {
  return std::any_of(list.begin(), list.end(),
                     [wanted](const std::string& one) { return one == "*" || one == wanted; });
}

// A selector that cannot be read selects everything: better one call too many.
Selector selector_of(const Json& webhook, const char* key) {
  const Json* given = find(webhook, key);
  if (given == nullptr || given->is_null()) return {};
  auto parsed = Selector::from_label_selector(*given);
  return parsed ? std::move(*parsed) : Selector();
}

bool names_resource(const std::string& pattern, std::string_view resource,
                    std::string_view subresource) {
  const size_t slash = pattern.find('/');
  const std::string_view left = std::string_view(pattern).substr(0, slash);
  const std::string_view right =
      slash == std::string::npos ? "" : std::string_view(pattern).substr(slash + 1);
  return (left == "*" || left == resource) && (right == subresource || right == "*");
}

}  // namespace

bool WebhookRule::covers_connecting() const {
  const auto is_connected_to = [](const std::string& resource) {
    const size_t slash = resource.find('/');
    if (slash == std::string::npos) return false;
    const auto subresource = std::string_view(resource).substr(slash + 1);
    return subresource == "*" || subresource == "exec" || subresource == "attach" ||
           subresource == "portforward" || subresource == "proxy";
  };
  return contains(operations, "CONNECT") && std::ranges::any_of(resources, is_connected_to);
}

Webhook Webhook::from_json(const Json& webhook) {
  Webhook result;
  result.name = string_or(find(webhook, "name"));
  result.namespaces = selector_of(webhook, "namespaceSelector");
  result.objects = selector_of(webhook, "objectSelector");
  result.fails_closed = string_or(find(webhook, "failurePolicy")) != "Ignore";
  result.equivalent = string_or(find(webhook, "matchPolicy")) != "Exact";
  result.reinvoked = string_or(find(webhook, "reinvocationPolicy")) == "IfNeeded";
  result.timeout = seconds(std::clamp<int64_t>(int_or(find(webhook, "timeoutSeconds"), 10), 1, 30));
  if (const Json* rules = find(webhook, "rules"); rules != nullptr && rules->is_array()) {
    for (const Json& rule : rules->as_array()) {
      result.rules.push_back({.operations = texts(rule, "operations"),
                              .groups = texts(rule, "apiGroups"),
                              .versions = texts(rule, "apiVersions"),
                              .resources = texts(rule, "resources"),
                              .scope = std::string(string_or(find(rule, "scope")))});
    }
  }
  result.url = string_or(at(webhook, "clientConfig", "url"));
  if (const Json* service = at(webhook, "clientConfig", "service");
      service != nullptr && service->is_object()) {
    result.service = WebhookService{.ns = std::string(string_or(find(*service, "namespace"))),
                                    .name = std::string(string_or(find(*service, "name"))),
                                    .path = std::string(string_or(find(*service, "path"))),
                                    .port = int_or(find(*service, "port"), 443)};
  }
  result.ca_pem =
      base64_decode(string_or(at(webhook, "clientConfig", "caBundle"))).value_or(std::string());
  return result;
}

bool Webhook::has_rule_for(std::string_view operation, std::string_view group,
                           std::string_view version, std::string_view resource,
                           std::string_view subresource, bool namespaced) const {
  return std::any_of(rules.begin(), rules.end(), [&](const WebhookRule& rule) {
    if (rule.scope == (namespaced ? "Cluster" : "Namespaced")) return false;
    return contains(rule.operations, operation) && contains(rule.groups, group) &&
           (equivalent || contains(rule.versions, version)) &&
           std::any_of(rule.resources.begin(), rule.resources.end(), [&](const std::string& one) {
             return names_resource(one, resource, subresource);
           });
  });
}

}  // namespace grapnel::local
