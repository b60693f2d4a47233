// One webhook of a configuration: for which writes it is called, and where it is.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/time.h"
#include "document/json.h"
#include "document/selector.h"

namespace grapnel::local {

struct WebhookRule {
  std::vector<std::string> operations;
  std::vector<std::string> groups;
  std::vector<std::string> versions;
  std::vector<std::string> resources;  // "pods", "pods/status", "*", "*/*", "pods/*", "*/status"
  std::string scope;                   // Cluster, Namespaced, *

  bool covers_connecting() const;  // exec, attach, port-forward or proxy, named or by a wildcard
};

struct WebhookService {
  std::string ns;
  std::string name;
  std::string path;
  int64_t port = 443;
};

struct Webhook {
  std::string name;
  std::vector<WebhookRule> rules;
  Selector namespaces;
  Selector objects;
  bool fails_closed = true;
  bool equivalent = true;  // any version of the resource counts
  bool reinvoked = false;  // asked again when a later one changed the object
  Duration timeout = seconds(10);
  std::string url;
  std::optional<WebhookService> service;
  bool resident = false;  // in this process, at the service's path
  std::string ca_pem;

  static Webhook from_json(const Json& webhook);
  bool has_rule_for(std::string_view operation, std::string_view group, std::string_view version,
                    std::string_view resource, std::string_view subresource, bool namespaced) const;
};

}  // namespace grapnel::local
