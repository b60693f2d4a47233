#include "api/service.h"

#include "api/fields.h"

namespace grapnel::api {
namespace {

ServicePort decode_port(JsonView port) {
  ServicePort decoded{.name = interned_at(port, "name"),
                      .port = count_at(port, "port").value_or(0),
                      .node_port = count_at(port, "nodePort").value_or(0),
                      .target_port = std::string(text_at(port, "targetPort")),
                      .protocol = interned_at(port, "protocol")};
  if (const auto number = count_at(port, "targetPort")) {
    decoded.target_port = std::to_string(*number);
  }
  return decoded;
}

}  // namespace

Result<Service> decode_service(JsonView object, const kube::MetaOptions& kept) {
  auto meta = kube::decode_meta(object, kept);
  if (!meta) return fail(std::move(meta.error()));
  const auto spec = object.find("spec");
  Service service{.meta = std::move(*meta),
                  .type = interned_at(spec, "type"),
                  .cluster_ip = std::string(text_at(spec, "clusterIP")),
                  .publish_not_ready_addresses = bool_at(spec, "publishNotReadyAddresses")};
  for_each_at(spec, "ports", [&](JsonView port) { service.ports.push_back(decode_port(port)); });
  service.selector = strings_at(spec, "selector");
  return service;
}

}  // namespace grapnel::api
