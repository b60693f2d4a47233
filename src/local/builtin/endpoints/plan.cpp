#include "local/builtin/endpoints/plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "local/builtin/naming.h"

namespace grapnel::local {
namespace {

using runtime::ObjectRef;
using runtime::Plan;

constexpr size_t kMostInASlice = 100;

std::optional<int64_t> target_of(const EndpointsService::Port& port, const EndpointsPod& pod) {
  if (port.target_name.empty()) return port.target_port;
  for (const auto& one : pod.ports) {
    if (one.name == port.target_name && one.protocol == port.protocol) return one.number;
  }
  return std::nullopt;
}

// The ports of the service on this pod. A name that the pod does not know leaves the port out.
JsonArray ports_of(const EndpointsService& service, const EndpointsPod& pod, bool slice) {
  JsonArray ports;
  for (const auto& port : service.ports) {
    const auto number = target_of(port, pod);
    if (!number) continue;
    JsonObject entry;
    if (slice || !port.name.empty()) entry["name"] = port.name;
    entry["port"] = *number;
    entry["protocol"] = port.protocol;
    if (port.app_protocol) entry["appProtocol"] = *port.app_protocol;
    ports.push_back(std::move(entry));
  }
  return ports;
}

JsonObject reference_to(const EndpointsPod& pod) {
  return {{"kind", "Pod"},
          {"namespace", pod.meta.ns()},
          {"name", pod.meta.name()},
          {"uid", pod.meta.uid.text()}};
}

bool has_hostname_here(const EndpointsService& service, const EndpointsPod& pod) {
  return !pod.hostname.empty() && pod.subdomain == service.meta.name();
}

class Round {
 public:
  explicit Round(const EndpointsObserved& o) : o_(o), service_(*o.service) {
    for (const auto* pod : o.pods) {
      if (!pod->ended && !pod->address.empty()) pods_.push_back(pod);
    }
    std::ranges::sort(pods_, {}, [](const EndpointsPod* pod) { return pod->address; });
  }

  Plan run() {
    write_endpoints(subsets());
    write_slices(slices());
    return std::move(plan_);
  }

 private:
  // ---- Endpoints --------------------------------------------------------------------------------

  JsonArray subsets() const {
    struct Subset {
      JsonArray ports, ready, not_ready;
    };
    std::map<std::string, Subset> by_ports;
    for (const auto* pod : pods_) {
      if (pod->meta.is_being_deleted() && !service_.publish_not_ready) continue;
      JsonArray ports = ports_of(service_, *pod, false);
      if (ports.empty() && !service_.headless) continue;
      Subset& subset = by_ports[to_text(ports)];
      JsonObject address{{"ip", pod->address}};
      if (has_hostname_here(service_, *pod)) address["hostname"] = pod->hostname;
      if (!pod->node.empty()) address["nodeName"] = pod->node;
      address["targetRef"] = reference_to(*pod);
      const bool ready = pod->ready || service_.publish_not_ready;
      (ready ? subset.ready : subset.not_ready).push_back(std::move(address));
      subset.ports = std::move(ports);
    }
    JsonArray list;
    for (auto& [text, subset] : by_ports) {
      JsonObject entry;
      if (!subset.ready.empty()) entry["addresses"] = std::move(subset.ready);
      if (!subset.not_ready.empty()) entry["notReadyAddresses"] = std::move(subset.not_ready);
      if (!subset.ports.empty()) entry["ports"] = std::move(subset.ports);
      list.push_back(std::move(entry));
    }
    return list;
  }

  void write_endpoints(JsonArray subsets) {
    if (o_.endpoints == nullptr) {
      JsonObject metadata = metadata_of(service_.meta.name());
      metadata.erase("ownerReferences");
      ensure_object(metadata, "labels")["endpoints.kubernetes.io/managed-by"] =
          "endpoint-controller";
      JsonObject object{{"metadata", std::move(metadata)}};
      if (!subsets.empty()) object["subsets"] = std::move(subsets);
      plan_.add(runtime::Create{&kube::kinds::kEndpoints, std::move(object)});
    } else if (!equal(o_.endpoints->content, subsets)) {
      plan_.add(runtime::Patch{
          .target = {&kube::kinds::kEndpoints, o_.endpoints->meta.key, o_.endpoints->meta.uid},
          .body = JsonObject{{"subsets", std::move(subsets)}}});
    }
  }

  // ---- EndpointSlices ---------------------------------------------------------------------------

  // What each slice holds: at most a hundred endpoints with the same ports.
  std::vector<JsonObject> slices() const {
    std::map<std::string, std::vector<JsonObject>> by_ports;
    for (const auto* pod : pods_) {
      JsonArray ports = ports_of(service_, *pod, true);
      auto& slices = by_ports[to_text(ports)];
      if (slices.empty() || slices.back()["endpoints"].as_array().size() >= kMostInASlice) {
        slices.push_back({{"endpoints", JsonArray()}, {"ports", std::move(ports)}});
      }
      const bool terminating = pod->meta.is_being_deleted();
      JsonObject endpoint{{"addresses", JsonArray{Json(pod->address)}},
                          {"conditions", JsonObject{{"ready", service_.publish_not_ready ||
                                                                  (pod->ready && !terminating)},
                                                    {"serving", pod->ready},
                                                    {"terminating", terminating}}}};
      if (has_hostname_here(service_, *pod)) endpoint["hostname"] = pod->hostname;
      if (!pod->node.empty()) endpoint["nodeName"] = pod->node;
      endpoint["targetRef"] = reference_to(*pod);
      slices.back()["endpoints"].as_array().push_back(std::move(endpoint));
    }
    std::vector<JsonObject> all;
    for (auto& [text, slices] : by_ports) std::ranges::move(slices, std::back_inserter(all));
    if (all.empty()) all.push_back({{"endpoints", JsonArray()}, {"ports", JsonArray()}});
    return all;
  }

  // Slices are filled in the order of their names; surplus ones are deleted.
  void write_slices(std::vector<JsonObject> wanted) {
    auto known = o_.slices;
    std::ranges::sort(known, {}, [](const EndpointsObject* slice) { return slice->meta.name(); });
    ChildNames names;
    for (const auto* slice : known) names.take(slice->meta.name());
    for (size_t i = 0; i < wanted.size(); ++i) {
      if (i < known.size()) {
        if (equal(known[i]->content, wanted[i])) continue;
        plan_.add(runtime::Patch{.target = ref(*known[i]), .body = std::move(wanted[i])});
        continue;
      }
      JsonObject metadata = metadata_of(names.next(service_.meta.name(), service_.meta.uid.text()));
      metadata["generateName"] = service_.meta.name() + "-";
      auto& labels = ensure_object(metadata, "labels");
      labels["kubernetes.io/service-name"] = service_.meta.name();
      labels["endpointslice.kubernetes.io/managed-by"] = "endpointslice-controller.k8s.io";
      JsonObject object = std::move(wanted[i]);
      object["metadata"] = std::move(metadata);
      object["addressType"] = "IPv4";
      plan_.add(runtime::Create{&kube::kinds::kEndpointSlice, std::move(object)});
    }
    for (size_t i = wanted.size(); i < known.size(); ++i)
      plan_.add(runtime::Delete{ref(*known[i])});
  }

  JsonObject metadata_of(std::string_view name) const {
    JsonObject labels;
    for (const auto& [key, value] : service_.meta.labels) labels[key.view()] = value.view();
    if (service_.headless) labels["service.kubernetes.io/headless"] = "";
    return {{"name", name},
            {"namespace", service_.meta.ns()},
            {"labels", std::move(labels)},
            {"ownerReferences", JsonArray{JsonObject{{"apiVersion", "v1"},
                                                     {"kind", "Service"},
                                                     {"name", service_.meta.name()},
                                                     {"uid", service_.meta.uid.text()},
                                                     {"controller", true},
                                                     {"blockOwnerDeletion", true}}}}};
  }

  static ObjectRef ref(const EndpointsObject& slice) {
    return {&kube::kinds::kEndpointSlice, slice.meta.key, slice.meta.uid};
  }

  const EndpointsObserved& o_;
  const EndpointsService& service_;
  std::vector<const EndpointsPod*> pods_;
  Plan plan_;
};

}  // namespace

Plan plan(const EndpointsObserved& o) {
  Plan plan;
  if (o.service == nullptr || o.service->meta.is_being_deleted()) {
    const bool ours = o.endpoints != nullptr &&
                      o.endpoints->meta.labels.has("endpoints.kubernetes.io/managed-by");
    if (ours) {
      plan.add(runtime::Delete{
          {&kube::kinds::kEndpoints, o.endpoints->meta.key, o.endpoints->meta.uid}});
    }
    return plan;
  }
  // Without a selector somebody else writes them.
  if (o.service->selector.empty() || o.service->external) return plan;
  return Round(o).run();
}

}  // namespace grapnel::local
