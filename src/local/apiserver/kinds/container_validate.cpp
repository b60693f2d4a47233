// What a container may say of itself.

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>

#include "base/quantity.h"
#include "base/strings.h"
#include "local/apiserver/fields.h"
#include "local/apiserver/kinds/kinds.h"

namespace grapnel::local::kinds {
namespace {

constexpr std::string_view kPortRange = "must be between 1 and 65535, inclusive";

bool is_port(int64_t number) {
  return number >= 1 && number <= 65535;
}

// Calls f(element, its path) for each element of a list that may not be there.
template <class F>
void each(const Json& object, const char* key, const std::string& path, F f) {
  const Json* list = find(object, key);
  if (list == nullptr || !list->is_array()) return;
  size_t i = 0;
  for (const Json& element : list->as_array()) f(element, fmt::format("{}.{}[{}]", path, key, i++));
}

bool is_one_of(std::string_view text, std::initializer_list<std::string_view> allowed) {
  return std::find(allowed.begin(), allowed.end(), text) != allowed.end();
}

// Resources of Kubernetes' own have no domain; all others must have one, and cannot be shared.
bool is_native_resource(std::string_view name) {
  return is_one_of(name, {"cpu", "memory", "ephemeral-storage"}) || name.starts_with("hugepages-");
}
bool is_extended_resource(std::string_view name) {
  return name.find('/') != std::string_view::npos && !name.starts_with("kubernetes.io/");
}

void validate_resource_name(std::string_view name, const std::string& where, FieldErrors& errors) {
  if (is_native_resource(name) || name.find('/') != std::string_view::npos) return;
  for (const char* why : {"must be a standard resource type or fully qualified",
                          "must be a standard resource for containers"}) {
    errors.add(Cause{.field = where,
                     .message = fmt::format("Invalid value: {}: {}", name, why),
                     .reason = "FieldValueInvalid"});
  }
}

void validate_request(const Json& container, std::string_view name, const Quantity& wanted,
                      std::string_view text, const std::string& path, FieldErrors& errors) {
  const auto limit = Quantity::parse(string_or(at(container, "resources", "limits", name)));
  if (is_extended_resource(name)) {
    if (!limit) {
      errors.required(path + ".resources.limits",
                      "Limit must be set for non overcommitable resources");
    } else if (*limit != wanted) {
      errors.invalid(path + ".resources.requests", text,
                     fmt::format("must be equal to {} limit of {}", name, limit->text()));
    }
    return;
  }
  if (limit && wanted > *limit) {
    errors.invalid(
        path + ".resources.requests", text,
        fmt::format("must be less than or equal to {} limit of {}", name, limit->text()));
  }
}

void validate_resources(const Json& container, const std::string& path, FieldErrors& errors) {
  for (const std::string_view part : {"limits", "requests"}) {
    const Json* list = at(container, "resources", part);
    if (list == nullptr || !list->is_object()) continue;
    for (const auto& entry : list->as_object()) {
      const std::string_view name(entry.key());
      const std::string where = fmt::format("{}.resources.{}[{}]", path, part, name);
      const std::string_view text = string_or(&entry.value());
      const auto quantity = Quantity::parse(text);
      if (!quantity) continue;  // the decoder says so
      validate_resource_name(name, where, errors);
      if (*quantity < Quantity()) {
        errors.invalid(where, text, "must be greater than or equal to 0");
      }
      if (is_extended_resource(name) && quantity->text().ends_with("m")) {
        errors.invalid(where, text, "must be an integer");
      }
      if (part == "requests") validate_request(container, name, *quantity, text, path, errors);
    }
  }
}

// The name of a port, by IANA's rules.
std::string why_not_port_name(std::string_view name) {
  if (name.size() > 15) return "must be no more than 15 characters";
  const bool characters = std::all_of(name.begin(), name.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-';
  });
  if (!characters) return "must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)";
  if (std::none_of(name.begin(), name.end(), [](char c) { return c >= 'a' && c <= 'z'; })) {
    return "must contain at least one letter (a-z)";
  }
  if (name.find("--") != std::string_view::npos) return "must not contain consecutive hyphens";
  if (name.starts_with('-') || name.ends_with('-')) return "must not begin or end with a hyphen";
  return "";
}

void validate_ports(const Json& container, const std::string& path, FieldErrors& errors) {
  std::set<std::string> names;
  each(container, "ports", path, [&](const Json& port, const std::string& where) {
    if (const std::string name(string_or(find(port, "name"))); !name.empty()) {
      if (const std::string why = why_not_port_name(name); !why.empty()) {
        errors.invalid(where + ".name", name, why);
      } else if (!names.insert(name).second) {
        errors.duplicate(where + ".name", Json(name));
      }
    }
    const int64_t number = int_or(find(port, "containerPort"));
    if (number == 0) {
      errors.required(where + ".containerPort");
    } else if (!is_port(number)) {
      errors.invalid_value(where + ".containerPort", Json(number), kPortRange);
    }
    if (const Json* host = find(port, "hostPort"); is_set(host) && int_or(host) != 0) {
      if (!is_port(int_or(host))) errors.invalid_value(where + ".hostPort", *host, kPortRange);
    }
    const std::string_view protocol = string_or(find(port, "protocol"));
    if (!is_one_of(protocol, {"TCP", "UDP", "SCTP"})) {
      errors.not_supported(where + ".protocol", protocol, {"SCTP", "TCP", "UDP"});
    }
  });
}

// The fields of a pod that its containers may ask for.
bool is_downward_field(std::string_view field) {
  return is_one_of(field, {"metadata.name", "metadata.namespace", "metadata.uid", "spec.nodeName",
                           "spec.serviceAccountName", "status.hostIP", "status.hostIPs",
                           "status.podIP", "status.podIPs"}) ||
         field.starts_with("metadata.labels['") || field.starts_with("metadata.annotations['");
}

void validate_value_source(const Json& variable, const std::string& where, FieldErrors& errors) {
  const Json* from = find(variable, "valueFrom");
  if (!is_set(from)) return;
  if (!string_or(find(variable, "value")).empty()) {
    errors.invalid(where + ".valueFrom", "", "may not be specified when `value` is not empty");
    return;
  }
  size_t sources = 0;
  for (const char* source :
       {"fieldRef", "resourceFieldRef", "configMapKeyRef", "secretKeyRef", "fileKeyRef"}) {
    sources += is_set(find(*from, source)) ? 1 : 0;
  }
  if (sources == 0) {
    errors.invalid(where + ".valueFrom", "",
                   "must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef` or "
                   "`secretKeyRef`");
  } else if (sources > 1) {
    errors.invalid(where + ".valueFrom", "",
                   "may not have more than one field specified at a time");
  }
  const std::string_view field = string_or(at(*from, "fieldRef", "fieldPath"));
  if (is_set(find(*from, "fieldRef")) && !is_downward_field(field)) {
    errors.invalid(where + ".valueFrom.fieldRef.fieldPath", field,
                   "error converting fieldPath: field label not supported: " + std::string(field));
  }
}

void validate_env(const Json& container, const std::string& path, FieldErrors& errors) {
  each(container, "env", path, [&](const Json& variable, const std::string& where) {
    const std::string_view name = string_or(find(variable, "name"));
    const bool printable = std::all_of(name.begin(), name.end(),
                                       [](char c) { return c >= ' ' && c <= '~' && c != '='; });
    if (name.empty()) {
      errors.required(where + ".name");
    } else if (!printable) {
      errors.invalid(where + ".name", name,
                     "a valid environment variable name must consist only of printable ASCII "
                     "characters other than '='");
    }
    validate_value_source(variable, where, errors);
  });
}

void validate_mounts(const Json& container, const std::string& path,
                     const std::set<std::string>& volumes, FieldErrors& errors) {
  std::set<std::string> paths;
  each(container, "volumeMounts", path, [&](const Json& mount, const std::string& where) {
    const std::string name(string_or(find(mount, "name")));
    const std::string target(string_or(find(mount, "mountPath")));
    if (name.empty()) {
      errors.required(where + ".name");
    } else if (!volumes.contains(name)) {
      errors.add(Cause{.field = where + ".name",
                       .message = fmt::format("Not found: {}", in_quotes(name)),
                       .reason = "FieldValueNotFound"});
    }
    if (target.empty()) {
      errors.required(where + ".mountPath");
    } else if (!paths.insert(target).second) {
      errors.invalid(where + ".mountPath", target, "must be unique");
    }
  });
}

void validate_port_reference(const Json* port, const std::string& where, FieldErrors& errors) {
  if (port != nullptr && port->is_string()) {
    if (const std::string why = why_not_port_name(string_or(port)); !why.empty()) {
      errors.invalid(where, string_or(port), why);
    }
  } else if (!is_port(int_or(port))) {
    errors.invalid_value(where, Json(int_or(port)), kPortRange);
  }
}

// What a probe or a hook does: one thing.
void validate_handler(const Json& handler, const std::string& where,
                      std::initializer_list<const char*> kinds, FieldErrors& errors) {
  size_t given = 0;
  for (const char* kind : kinds) {
    const Json* one = find(handler, kind);
    if (!is_set(one)) continue;
    if (++given > 1) {
      errors.forbidden(fmt::format("{}.{}", where, kind),
                       "may not specify more than 1 handler type");
    } else if (std::string_view(kind) == "httpGet" || std::string_view(kind) == "tcpSocket") {
      validate_port_reference(find(*one, "port"), fmt::format("{}.{}.port", where, kind), errors);
    }
  }
  if (given == 0) errors.required(where, "must specify a handler type");
}

void validate_probe(const Json& container, const char* name, const std::string& path,
                    FieldErrors& errors) {
  const Json* probe = find(container, name);
  if (!is_set(probe)) return;
  const std::string where = fmt::format("{}.{}", path, name);
  validate_handler(*probe, where, {"exec", "httpGet", "tcpSocket", "grpc"}, errors);
  for (const char* key : {"initialDelaySeconds", "timeoutSeconds", "periodSeconds",
                          "successThreshold", "failureThreshold"}) {
    const Json* value = find(*probe, key);
    if (is_set(value) && int_or(value) < 0) {
      errors.invalid_value(fmt::format("{}.{}", where, key), *value,
                           "must be greater than or equal to 0");
    }
  }
  const Json* successes = find(*probe, "successThreshold");
  if (std::string_view(name) != "readinessProbe" && is_set(successes) && int_or(successes) != 1) {
    errors.invalid_value(where + ".successThreshold", *successes, "must be 1");
  }
}

}  // namespace

void container_validate(const Json& container, const std::string& path,
                        const std::set<std::string>& volumes, FieldErrors& errors) {
  const std::string_view image = string_or(find(container, "image"));
  if (image.empty()) errors.required(path + ".image");
  if (!image.empty() && trim(image) != image) {
    errors.invalid(path + ".image", image, "must not have leading or trailing whitespace");
  }
  const std::string_view ends = string_or(find(container, "terminationMessagePolicy"));
  if (!is_one_of(ends, {"File", "FallbackToLogsOnError"})) {
    errors.not_supported(path + ".terminationMessagePolicy", ends,
                         {"File", "FallbackToLogsOnError"});
  }
  const std::string_view policy = string_or(find(container, "imagePullPolicy"));
  if (!is_one_of(policy, {"Always", "IfNotPresent", "Never"})) {
    errors.not_supported(path + ".imagePullPolicy", policy, {"Always", "IfNotPresent", "Never"});
  }
  validate_ports(container, path, errors);
  validate_env(container, path, errors);
  validate_mounts(container, path, volumes, errors);
  for (const char* probe : {"livenessProbe", "readinessProbe", "startupProbe"}) {
    validate_probe(container, probe, path, errors);
  }
  for (const char* hook : {"postStart", "preStop"}) {
    const Json* one = at(container, "lifecycle", hook);
    if (is_set(one)) {
      validate_handler(*one, fmt::format("{}.lifecycle.{}", path, hook),
                       {"exec", "httpGet", "tcpSocket", "sleep"}, errors);
    }
  }
  validate_resources(container, path, errors);
}

}  // namespace grapnel::local::kinds
