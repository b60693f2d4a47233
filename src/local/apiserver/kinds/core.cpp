#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "base/strings.h"
#include "local/apiserver/fields.h"
#include "local/apiserver/kinds/kinds.h"

namespace grapnel::local::kinds {
namespace {

constexpr size_t kMostData = 1UL << 20;
constexpr const char* kClaimProtection = "kubernetes.io/pvc-protection";

// Keys of a ConfigMap's or Secret's data.
std::string why_not_data_key(std::string_view key) {
  const bool good =
      !key.empty() && key.size() <= 253 && std::all_of(key.begin(), key.end(), [](unsigned char c) {
        return std::isalnum(c) != 0 || c == '-' || c == '_' || c == '.';
      });
  if (!good) {
    return "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. "
           "'key.name',  or 'KEY_NAME',  or 'key-name', regex used for validation is "
           "'[-._a-zA-Z0-9]+')";
  }
  if (key == "." || key == "..") return fmt::format("must not be '{}'", key);
  if (key.starts_with("..")) return "must not start with '..'";
  return "";
}

size_t validate_data(const Json& object, const char* key, FieldErrors& errors) {
  size_t size = 0;
  const Json* data = find(object, key);
  if (data == nullptr || !data->is_object()) return 0;
  for (const auto& entry : data->as_object()) {
    const std::string_view name(entry.key());
    if (const std::string why = why_not_data_key(name); !why.empty()) {
      errors.invalid(fmt::format("{}[{}]", key, name), name, why);
    }
    size += name.size() + string_or(&entry.value()).size();
  }
  return size;
}

void validate_immutable_data(const Json& now, const Json& old, std::string_view also,
                             FieldErrors& errors) {
  if (!bool_or(find(old, "immutable"))) return;
  if (!bool_or(find(now, "immutable"))) {
    errors.forbidden("immutable", "field is immutable when `immutable` is set");
  }
  for (const std::string_view key : {std::string_view("data"), also}) {
    if (key.empty()) continue;
    const Json* after = find(now, key);
    const Json* before = find(old, key);
    const bool same = is_set(after) == is_set(before) && (!is_set(after) || equal(*after, *before));
    if (!same) {
      errors.forbidden(std::string(key), "field is immutable when `immutable` is set");
    }
  }
}

}  // namespace

void namespace_defaults(JsonObject& ns) {
  const std::string name(string_or(at_in(ns, "metadata", "name")));
  if (!name.empty()) {
    ensure_object(ensure_object(ns, "metadata"), "labels")["kubernetes.io/metadata.name"] = name;
  }
}

void namespace_prepare_create(JsonObject& ns) {
  JsonArray finalizers;
  if (const Json* given = at_in(ns, "spec", "finalizers"); given != nullptr && given->is_array()) {
    for (const Json& one : given->as_array()) {
      if (string_or(&one) != "kubernetes") finalizers.push_back(one);
    }
  }
  finalizers.emplace_back("kubernetes");
  ns["spec"] = JsonObject{{"finalizers", std::move(finalizers)}};
  ns["status"] = JsonObject{{"phase", "Active"}};
}

void namespace_prepare_update(JsonObject& ns, const Json& old) {
  if (const Json* spec = find(old, "spec")) ns["spec"] = *spec;
  if (const Json* status = find(old, "status")) ns["status"] = *status;
}

void node_prepare_create(JsonObject& node) {
  // A node registers itself with its status.
  ensure_object(node, "spec");
}

void config_map_validate(const Json& config_map, FieldErrors& errors) {
  const size_t size =
      validate_data(config_map, "data", errors) + validate_data(config_map, "binaryData", errors);
  if (size > kMostData) errors.too_long("", kMostData);
  const Json* data = find(config_map, "data");
  const Json* binary = find(config_map, "binaryData");
  if (data == nullptr || binary == nullptr || !data->is_object() || !binary->is_object()) return;
  for (const auto& entry : binary->as_object()) {
    const std::string_view key(entry.key());
    if (data->as_object().contains(key)) {
      errors.invalid(fmt::format("data[{}]", key), key, "duplicate of key present in binaryData");
    }
  }
}

void config_map_validate_update(const Json& now, const Json& old, FieldErrors& errors) {
  validate_immutable_data(now, old, "binaryData", errors);
  config_map_validate(now, errors);
}

void secret_defaults(JsonObject& secret) {
  set_default(secret, "type", "Opaque");
}

// stringData is for writing only: it becomes data.
void secret_prepare(JsonObject& secret) {
  const JsonObject* texts = object_at(secret, "stringData");
  if (texts != nullptr && !texts->empty()) {
    const JsonObject copy = *texts;
    JsonObject& data = ensure_object(secret, "data");
    for (const auto& [name, value] : copy) data[name] = base64_encode(string_or(&value));
  }
  secret.erase("stringData");
}

void secret_prepare_update(JsonObject& secret, const Json& old) {
  secret_prepare(secret);
  if (const Json* type = find(old, "type")) set_default(secret, "type", *type);
}

void secret_validate(const Json& secret, FieldErrors& errors) {
  if (validate_data(secret, "data", errors) > kMostData * 4 / 3) errors.too_long("data", kMostData);
  // What the known types cannot do without.
  struct Need {
    std::string_view type;
    std::string_view key;
  };
  constexpr Need kNeeds[] = {{"kubernetes.io/dockercfg", ".dockercfg"},
                             {"kubernetes.io/dockerconfigjson", ".dockerconfigjson"},
                             {"kubernetes.io/ssh-auth", "ssh-privatekey"},
                             {"kubernetes.io/tls", "tls.crt"},
                             {"kubernetes.io/tls", "tls.key"}};
  const std::string_view type = string_or(find(secret, "type"));
  for (const Need& need : kNeeds) {
    if (need.type == type && at(secret, "data", need.key) == nullptr) {
      errors.required(fmt::format("data[{}]", need.key));
    }
  }
}

void secret_validate_update(const Json& now, const Json& old, FieldErrors& errors) {
  const std::string_view after = string_or(find(now, "type"));
  if (after != string_or(find(old, "type"))) {
    errors.invalid("type", after, "field is immutable");
  }
  validate_immutable_data(now, old, "", errors);
  secret_validate(now, errors);
}

void claim_defaults(JsonObject& claim) {
  set_default(ensure_object(claim, "spec"), "volumeMode", "Filesystem");
}

void claim_prepare_create(JsonObject& claim) {
  claim["status"] = JsonObject{{"phase", "Pending"}};
  // From the first moment on: a controller takes it away when no pod uses the claim.
  Json& finalizers = ensure_object(claim, "metadata")["finalizers"];
  if (!finalizers.is_array()) finalizers = JsonArray();
  JsonArray& all = finalizers.get_array();
  if (std::ranges::find(all, Json(kClaimProtection)) == all.end())
    all.emplace_back(kClaimProtection);
}

void claim_validate(const Json& claim, FieldErrors& errors) {
  const Json& spec = spec_of(claim);
  const Json* modes = find(spec, "accessModes");
  if (modes == nullptr || !modes->is_array() || modes->as_array().empty()) {
    errors.required("spec.accessModes", "at least 1 access mode is required");
  }
  if (at(spec, "resources", "requests", "storage") == nullptr) {
    errors.required("spec.resources[storage]");
  }
}

// What containers get by default is also what they ask for by default.
void limit_range_defaults(JsonObject& range) {
  for_each_object(ensure_object(range, "spec"), "limits", [](JsonObject& limit) {
    if (string_or(limit.if_contains("type")) != "Container") return;
    for (const auto& [from, to] :
         {std::pair("max", "default"), std::pair("default", "defaultRequest"),
          std::pair("min", "defaultRequest")}) {
      const JsonObject* source = object_at(limit, from);
      if (source == nullptr) continue;
      const JsonObject copy = *source;
      JsonObject& target = ensure_object(limit, to);
      for (const auto& [name, value] : copy) set_default(target, name, value);
    }
  });
}

void event_defaults(JsonObject& event) {
  for (const char* key : {"reportingComponent", "reportingInstance"}) set_default(event, key, "");
}

void volume_defaults(JsonObject& volume) {
  JsonObject& spec = ensure_object(volume, "spec");
  set_default(spec, "persistentVolumeReclaimPolicy", "Retain");
  set_default(spec, "volumeMode", "Filesystem");
}

void volume_prepare_create(JsonObject& volume) {
  volume["status"] = JsonObject{{"phase", "Pending"}};
}

void event_validate(const Json& event, FieldErrors& errors) {
  const Json* about = find(event, "involvedObject");
  const std::string_view ns = about == nullptr ? "" : string_or(find(*about, "namespace"));
  const std::string_view own = string_or(at(event, "metadata", "namespace"));
  if (ns.empty() ? (own != "default" && own != "kube-system") : ns != own) {
    errors.invalid("involvedObject.namespace", ns, "does not match event.namespace");
  }
}

void lease_validate(const Json& lease, FieldErrors& errors) {
  const Json* spec = find(lease, "spec");
  if (spec == nullptr) return;
  if (const Json* length = find(*spec, "leaseDurationSeconds");
      is_set(length) && int_or(length) <= 0) {
    errors.invalid_value("spec.leaseDurationSeconds", *length, "must be greater than 0");
  }
  if (const Json* transitions = find(*spec, "leaseTransitions");
      is_set(transitions) && int_or(transitions) < 0) {
    errors.invalid_value("spec.leaseTransitions", *transitions,
                         "must be greater than or equal to 0");
  }
}

void endpoint_slice_defaults(JsonObject& slice) {
  for_each_object(slice, "endpoints",
                  [](JsonObject& endpoint) { set_default(endpoint, "conditions", JsonObject()); });
  for_each_object(slice, "ports", [](JsonObject& port) {
    set_default(port, "name", "");
    set_default(port, "protocol", "TCP");
  });
}

void endpoints_defaults(JsonObject& endpoints) {
  for_each_object(endpoints, "subsets", [](JsonObject& subset) {
    for_each_object(subset, "ports",
                    [](JsonObject& port) { set_default(port, "protocol", "TCP"); });
  });
}

void priority_class_defaults(JsonObject& priority_class) {
  set_default(priority_class, "preemptionPolicy", "PreemptLowerPriority");
}

void role_binding_defaults(JsonObject& binding) {
  if (JsonObject* role = object_at(binding, "roleRef")) {
    set_default(*role, "apiGroup", "rbac.authorization.k8s.io");
  }
  for_each_object(binding, "subjects", [](JsonObject& subject) {
    const std::string kind(string_or(subject.if_contains("kind")));
    if (kind == "User" || kind == "Group") {
      set_default(subject, "apiGroup", "rbac.authorization.k8s.io");
    }
  });
}

void webhooks_defaults(JsonObject& configuration) {
  for_each_object(configuration, "webhooks", [](JsonObject& webhook) {
    set_default(webhook, "failurePolicy", "Fail");
    set_default(webhook, "matchPolicy", "Equivalent");
    set_default(webhook, "namespaceSelector", JsonObject());
    set_default(webhook, "objectSelector", JsonObject());
    set_default(webhook, "timeoutSeconds", 10);
    for_each_object(webhook, "rules", [](JsonObject& rule) { set_default(rule, "scope", "*"); });
    JsonObject* client = object_at(webhook, "clientConfig");
    JsonObject* service = client == nullptr ? nullptr : object_at(*client, "service");
    if (service != nullptr) set_default(*service, "port", 443);
  });
}

std::string why_not_rbac_name(std::string_view name) {
  if (name == "." || name == "..") return fmt::format("may not be '{}'", name);
  if (name.find('/') != std::string_view::npos) return "may not contain '/'";
  if (name.find('%') != std::string_view::npos) return "may not contain '%'";
  return "";
}

}  // namespace grapnel::local::kinds
