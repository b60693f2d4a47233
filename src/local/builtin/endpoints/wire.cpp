#include "local/builtin/endpoints/plan.h"
#include "local/builtin/wiring.h"

namespace grapnel::local {

namespace kinds = kube::kinds;
using runtime::Plan;

void add_endpoints(runtime::Manager& manager) {
  static constexpr std::string_view kServiceName = "kubernetes.io/service-name";
  auto& services =
      manager.add_informer<EndpointsService>({.kind = kinds::kService}, decode_endpoints_service);
  auto& pods = manager.add_informer<EndpointsPod>({.kind = kinds::kPod}, decode_endpoints_pod);
  auto& endpoints =
      manager.add_informer<EndpointsObject>({.kind = kinds::kEndpoints}, decode_endpoints);
  auto& slices = manager.add_informer<EndpointsObject>(
      {.kind = kinds::kEndpointSlice,
       .filter = {.label_selector =
                      "endpointslice.kubernetes.io/managed-by=endpointslice-controller.k8s.io"}},
      decode_endpoint_slice);
  const auto by_namespace = [](const auto& object) {
    return std::vector{std::string(object.meta.ns())};
  };
  pods.cache().add_index("namespace", by_namespace);
  services.cache().add_index("namespace", by_namespace);
  slices.cache().add_index("service", [](const EndpointsObject& slice) {
    return std::vector{fmt::format("{}/{}", slice.meta.ns(), slice.meta.labels.get(kServiceName))};
  });

  auto plan = [&](const kube::Key& key, Time, const runtime::Refusal*) -> std::optional<Plan> {
    const auto service = services.cache().get(key);
    const auto known = endpoints.cache().get(key);
    const auto known_slices = slices.cache().indexed("service", key.text());
    EndpointsObserved observed{.service = service.get(), .endpoints = known.get()};
    for (const auto& slice : known_slices) {
      const auto* owner = slice->meta.controller();
      if (service && owner != nullptr && owner->uid == service->meta.uid) {
        observed.slices.push_back(slice.get());
      }
    }
    std::vector<std::shared_ptr<const EndpointsPod>> near;
    if (service) near = pods.cache().indexed("namespace", key.ns.str());
    for (const auto& pod : near) {
      if (service->selects(pod->meta.labels)) observed.pods.push_back(pod.get());
    }
    return local::plan(observed);
  };
  auto& controller = manager.add_controller(
      {.name = "endpoints", .kind = &kinds::kService, .plan = std::move(plan)});
  manager.watch(services, controller);
  manager.watch(endpoints, controller);
  manager.watch_mapped<EndpointsObject>(slices, controller, [](const EndpointsObject& slice) {
    return std::vector{
        kube::Key{slice.meta.key.ns, std::string(slice.meta.labels.get(kServiceName))}};
  });
  manager.watch_mapped<EndpointsPod>(pods, controller, [&services](const EndpointsPod& pod) {
    std::vector<kube::Key> keys;
    for (const auto& service : services.cache().indexed("namespace", pod.meta.key.ns.str())) {
      if (service->selects(pod.meta.labels)) keys.push_back(service->meta.key);
    }
    return keys;
  });
}

}  // namespace grapnel::local
