#include <algorithm>

#include "local/builtin/endpoints/plan.h"

namespace grapnel::local {
namespace {

std::string text_at(JsonView value, std::string_view key) {
  const auto found = value.find(key);
  return std::string(found ? found->as_string().value_or("") : "");
}

int64_t int_at(JsonView value, std::string_view key) {
  const auto found = value.find(key);
  return found ? found->as_int().value_or(0) : 0;
}

void for_each(JsonView value, std::string_view key, absl::FunctionRef<void(JsonView)> f) {
  if (const auto list = value.find(key)) {
    list->for_each_element([&](size_t, JsonView element) {
      f(element);
      return true;
    });
  }
}

EndpointsService::Port decode_port(JsonView port) {
  EndpointsService::Port out{.name = text_at(port, "name"),
                             .port = int_at(port, "port"),
                             .target_port = int_at(port, "port")};
  if (auto protocol = text_at(port, "protocol"); !protocol.empty()) out.protocol = protocol;
  if (auto app = text_at(port, "appProtocol"); !app.empty()) out.app_protocol = app;
  if (const auto target = port.find("targetPort")) {
    if (const auto name = target->as_string()) {
      out.target_name = *name;
      out.target_port = 0;
    } else if (const auto number = target->as_int(); number && *number != 0) {
      out.target_port = *number;
    }
  }
  return out;
}

}  // namespace

bool EndpointsService::selects(const kube::StringMap& labels) const {
  return !selector.empty() && std::ranges::all_of(selector, [&](const auto& entry) {
    return labels.has(entry.first) && labels.get(entry.first) == entry.second;
  });
}

bool EndpointsObject::operator==(const EndpointsObject& other) const {
  return meta == other.meta && equal(content, other.content);
}

Result<EndpointsService> decode_endpoints_service(JsonView object) {
  auto meta = kube::decode_meta(object, {.all_labels = true});
  if (!meta) return fail(meta.error());
  EndpointsService service{.meta = std::move(*meta)};
  const auto spec = object.find("spec");
  if (!spec) return service;
  service.external = text_at(*spec, "type") == "ExternalName";
  service.headless = text_at(*spec, "clusterIP") == "None";
  if (const auto publish = spec->find("publishNotReadyAddresses")) {
    service.publish_not_ready = publish->as_bool().value_or(false);
  }
  if (const auto selector = spec->find("selector")) {
    selector->for_each_member([&](std::string_view key, JsonView value) {
      service.selector.emplace_back(key, value.as_string().value_or(""));
      return true;
    });
  }
  for_each(*spec, "ports", [&](JsonView port) { service.ports.push_back(decode_port(port)); });
  return service;
}

Result<EndpointsPod> decode_endpoints_pod(JsonView object) {
  auto meta = kube::decode_meta(object, {.all_labels = true});
  if (!meta) return fail(meta.error());
  EndpointsPod pod{.meta = std::move(*meta)};
  if (const auto spec = object.find("spec")) {
    pod.node = text_at(*spec, "nodeName");
    pod.hostname = text_at(*spec, "hostname");
    pod.subdomain = text_at(*spec, "subdomain");
    for_each(*spec, "containers", [&](JsonView container) {
      for_each(container, "ports", [&](JsonView port) {
        const auto protocol = text_at(port, "protocol");
        pod.ports.push_back({.name = text_at(port, "name"),
                             .protocol = protocol.empty() ? "TCP" : protocol,
                             .number = int_at(port, "containerPort")});
      });
    });
  }
  if (const auto status = object.find("status")) {
    pod.address = text_at(*status, "podIP");
    const auto phase = text_at(*status, "phase");
    pod.ended = phase == "Succeeded" || phase == "Failed";
    for_each(*status, "conditions", [&](JsonView condition) {
      if (text_at(condition, "type") == "Ready") pod.ready = text_at(condition, "status") == "True";
    });
  }
  return pod;
}

Result<EndpointsObject> decode_endpoints(JsonView object) {
  auto meta = kube::decode_meta(object, {.all_labels = true});
  if (!meta) return fail(meta.error());
  const auto subsets = object.find("subsets");
  return EndpointsObject{std::move(*meta), subsets ? subsets->to_json() : Json(JsonArray())};
}

Result<EndpointsObject> decode_endpoint_slice(JsonView object) {
  auto meta = kube::decode_meta(object, {.all_labels = true});
  if (!meta) return fail(meta.error());
  JsonObject content;
  for (const auto* key : {"endpoints", "ports"}) {
    const auto value = object.find(key);
    content[key] = value && !value->is_null() ? value->to_json() : Json(JsonArray());
  }
  return EndpointsObject{std::move(*meta), std::move(content)};
}

}  // namespace grapnel::local
