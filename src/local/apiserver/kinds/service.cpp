#include <fmt/format.h>

#include <set>

#include "base/strings.h"
#include "local/apiserver/fields.h"
#include "local/apiserver/kinds/kinds.h"

namespace grapnel::local::kinds {
namespace {

constexpr std::string_view kPortRange = "must be between 1 and 65535, inclusive";

bool is_port(int64_t number) {
  return number >= 1 && number <= 65535;
}

// A headless service that nobody selects for may be of both families.
void family_defaults(JsonObject& spec) {
  const Json* selector = spec.if_contains("selector");
  const bool headless = string_or(spec.if_contains("clusterIP")) == "None";
  const bool selects = is_set(selector) && selector->is_object() && !selector->as_object().empty();
  if (headless && !selects) {
    set_default(spec, "ipFamilies", JsonArray{Json("IPv4"), Json("IPv6")});
    set_default(spec, "ipFamilyPolicy", "RequireDualStack");
  } else {
    set_default(spec, "ipFamilies", JsonArray{Json("IPv4")});
    set_default(spec, "ipFamilyPolicy", "SingleStack");
  }
}

// As Go's %#v prints the part of a port that must be there once.
std::string go_port(std::string_view protocol, int64_t port) {
  return fmt::format(
      "core.ServicePort{{Name:\"\", Protocol:{}, AppProtocol:(*string)(nil), Port:{}, "
      "TargetPort:intstr.IntOrString{{Type:0, IntVal:0, StrVal:\"\"}}, NodePort:0}}",
      in_quotes(protocol), port);
}

void validate_port(const Json& port, const std::string& where, FieldErrors& errors) {
  const int64_t number = int_or(find(port, "port"));
  if (!is_port(number)) errors.invalid_value(where + ".port", Json(number), kPortRange);
  const std::string_view protocol = string_or(find(port, "protocol"));
  if (protocol != "TCP" && protocol != "UDP" && protocol != "SCTP") {
    errors.not_supported(where + ".protocol", protocol, {"SCTP", "TCP", "UDP"});
  }
  const Json* target = find(port, "targetPort");
  if (is_set(target) && target->is_number() && !is_port(int_or(target))) {
    errors.invalid_value(where + ".targetPort", *target, kPortRange);
  }
}

void validate_ports(const JsonArray& ports, FieldErrors& errors) {
  std::set<std::string> names;
  std::set<std::pair<std::string, int64_t>> numbers;
  for (size_t i = 0; i < ports.size(); ++i) {
    const std::string where = fmt::format("spec.ports[{}]", i);
    const std::string name(string_or(find(ports[i], "name")));
    if (name.empty() && ports.size() > 1) errors.required(where + ".name");
    if (!name.empty()) {
      if (const std::string why = why_not_dns1123_label(name); !why.empty()) {
        errors.invalid(where + ".name", name, why);
      } else if (!names.insert(name).second) {
        errors.duplicate(where + ".name", Json(name));
      }
    }
    validate_port(ports[i], where, errors);
  }
  for (size_t i = 0; i < ports.size(); ++i) {
    const std::string protocol(string_or(find(ports[i], "protocol")));
    const int64_t number = int_or(find(ports[i], "port"));
    if (numbers.insert({protocol, number}).second) continue;
    errors.add(Cause{.field = fmt::format("spec.ports[{}]", i),
                     .message = fmt::format("Duplicate value: {}", go_port(protocol, number)),
                     .reason = "FieldValueDuplicate"});
  }
}

}  // namespace

void service_defaults(JsonObject& service) {
  JsonObject& spec = ensure_object(service, "spec");
  set_default(spec, "sessionAffinity", "None");
  if (string_or(spec.if_contains("sessionAffinity")) == "ClientIP") {
    JsonObject& config = ensure_object(spec, "sessionAffinityConfig");
    set_default(ensure_object(config, "clientIP"), "timeoutSeconds", 10800);
  }
  set_default(spec, "type", "ClusterIP");
  for_each_object(spec, "ports", [](JsonObject& port) {
    set_default(port, "protocol", "TCP");
    const Json number = int_or(port.if_contains("port"));
    Json* target = port.if_contains("targetPort");
    if (!is_set(target) || (target->is_number() && int_or(target) == 0)) {
      port["targetPort"] = number;
    }
  });
  const std::string type(string_or(spec.if_contains("type")));
  if (type == "NodePort" || type == "LoadBalancer") {
    set_default(spec, "externalTrafficPolicy", "Cluster");
  }
  if (type == "LoadBalancer") set_default(spec, "allocateLoadBalancerNodePorts", true);
  if (type != "ExternalName") {
    set_default(spec, "internalTrafficPolicy", "Cluster");
    family_defaults(spec);
  }
}

void service_validate(const Json& service, FieldErrors& errors) {
  const Json& spec = spec_of(service);
  const std::string_view type = string_or(find(spec, "type"));
  const bool headless = string_or(find(spec, "clusterIP")) == "None";
  static const JsonArray kNone;
  const Json* list = find(spec, "ports");
  const JsonArray& ports = list != nullptr && list->is_array() ? list->as_array() : kNone;
  if (ports.empty() && !headless && type != "ExternalName") errors.required("spec.ports");
  if (type == "ExternalName" && string_or(find(spec, "externalName")).empty()) {
    errors.required("spec.externalName");
  }
  validate_ports(ports, errors);
  labels_validate(find(spec, "selector"), "spec.selector", errors);
  const std::string_view affinity = string_or(find(spec, "sessionAffinity"));
  if (affinity != "ClientIP" && affinity != "None") {
    errors.not_supported("spec.sessionAffinity", affinity, {"ClientIP", "None"});
  }
  if (type != "ClusterIP" && type != "NodePort" && type != "LoadBalancer" &&
      type != "ExternalName") {
    errors.not_supported("spec.type", type,
                         {"ClusterIP", "ExternalName", "LoadBalancer", "NodePort"});
  }
}

void service_validate_update(const Json& service, const Json& old, FieldErrors& errors) {
  service_validate(service, errors);
  const Json& now = spec_of(service);
  const Json& before = spec_of(old);
  // Only a change of type may take an address away.
  if (string_or(find(now, "type")) != string_or(find(before, "type"))) return;
  const std::string_view address = string_or(find(now, "clusterIP"));
  const std::string_view was = string_or(find(before, "clusterIP"));
  if (!was.empty() && !address.empty() && address != was) {
    errors.invalid("spec.clusterIPs[0]", address, "may not change once set");
  }
}

}  // namespace grapnel::local::kinds
