#include "local/kubelet/names.h"

#include <algorithm>
#include <cctype>
#include <charconv>

#include "base/strings.h"
#include "local/node/network.h"
#include "local/node/sandbox.h"

namespace grapnel::local::kubelet {
namespace {

// How long after a pod came or went another of its group may come. Longer than it takes to make a
// Job's pods one after the other, short enough for whoever mistypes a name.
constexpr Duration kGroupChanges = seconds(10);

bool is_selected(const api::Service& service, const Pod& pod) {
  if (service.selector.empty() || service.meta.ns() != pod.meta.ns()) return false;
  const Json* labels = at(*pod.object, "metadata", "labels");
  if (labels == nullptr) return false;
  return std::ranges::all_of(service.selector, [&](const auto& entry) {
    return string_or(find(*labels, entry.first.view())) == entry.second.view();
  });
}

bool is_ready(const Pod& pod) {
  return std::ranges::any_of(elements(find(pod.status(), "conditions")), [](const Json& c) {
    return string_or(find(c, "type")) == "Ready" && string_or(find(c, "status")) == "True";
  });
}

std::string dashed(std::string address) {
  std::ranges::replace(address, '.', '-');
  return address;
}

std::string zone_of(std::string_view service, std::string_view ns) {
  return fmt::format("{}.{}.svc.{}", service, ns, kClusterDomain);
}

std::string zone_of(const api::Service& service) {
  return zone_of(service.meta.name(), service.meta.ns());
}

std::string_view subdomain_of(const Pod& pod) {
  return string_or(find(pod.spec(), "subdomain"));
}

// The name that a pod asks for itself; "" for most.
std::string asked_name(const Pod& pod) {
  const auto hostname = string_or(find(pod.spec(), "hostname"));
  const auto subdomain = subdomain_of(pod);
  if (hostname.empty() || subdomain.empty()) return "";
  return fmt::format("{}.{}", hostname, zone_of(subdomain, pod.meta.ns()));
}

// The name of a pod behind a headless service.
std::string name_of(const Endpoint& endpoint, const api::Service& service) {
  if (subdomain_of(*endpoint.pod) == service.meta.name()) {
    if (auto name = asked_name(*endpoint.pod); !name.empty()) return name;
  }
  return dashed(endpoint.address) + "." + zone_of(service);
}

// It has not run yet, and will.
bool is_starting(const Pod& pod) {
  const auto phase = pod.phase();
  return (phase.empty() || phase == "Pending") && !pod.meta.is_being_deleted();
}

bool is_published(const api::Service& service, const PlacedPod& placed) {
  if (placed.address.empty()) return false;
  return service.publish_not_ready_addresses ||
         (is_ready(*placed.pod) && !placed.pod->meta.is_being_deleted());
}

void add(dns::Table& table, const std::string& name, const std::string& address) {
  if (const auto number = parse_address(address)) table.add_address(name, *number);
}

std::string protocol_of(const api::ServicePort& port) {
  return port.protocol.empty() ? "tcp" : to_lower(port.protocol.view());
}

void add_ports(dns::Table& table, const api::Service& service, const std::string& zone,
               const std::string& target, const Pod* pod) {
  for (const api::ServicePort& port : service.ports) {
    if (port.name.empty()) continue;
    const uint16_t number =
        pod == nullptr ? static_cast<uint16_t>(port.port) : target_port(port, *pod);
    table.add_service(fmt::format("_{}._{}.{}", port.name.view(), protocol_of(port), zone),
                      {.port = number, .target = target});
  }
}

bool has_own_address(const api::Service& service) {
  return !service.cluster_ip.empty() && service.cluster_ip != "None";
}

bool is_api(const api::Service& service) {
  return service.meta.name() == "kubernetes" && service.meta.ns() == "default";
}

std::string shouted(std::string_view name) {
  std::string out;
  for (const char c : name) {
    out +=
        c == '-' || c == '.' ? '_' : static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  }
  return out;
}

}  // namespace

bool may_move(const Pod& before, const Pod& after) {
  const auto address = [](const Pod& pod) { return string_or(find(pod.status(), "podIP")); };
  const Json* labels[] = {at(*before.object, "metadata", "labels"),
                          at(*after.object, "metadata", "labels")};
  const Json none;
  return !equal(labels[0] == nullptr ? none : *labels[0],
                labels[1] == nullptr ? none : *labels[1]) ||
         address(before) != address(after) || before.phase() != after.phase() ||
         is_ready(before) != is_ready(after) ||
         before.meta.is_being_deleted() != after.meta.is_being_deleted();
}

std::vector<Endpoint> endpoints_of(const api::Service& service,
                                   const std::vector<PlacedPod>& pods) {
  std::vector<Endpoint> out;
  for (const PlacedPod& placed : pods) {
    if (placed.pod->is_finished() || !is_selected(service, *placed.pod)) continue;
    if (!is_published(service, placed)) continue;
    out.push_back({.pod = placed.pod.get(), .address = placed.address});
  }
  return out;
}

uint16_t target_port(const api::ServicePort& port, const Pod& pod) {
  const std::string& target = port.target_port;
  int number = 0;
  const auto [end, error] = std::from_chars(target.data(), target.data() + target.size(), number);
  if (!target.empty() && error == std::errc() && end == target.data() + target.size()) {
    return static_cast<uint16_t>(number == 0 ? port.port : number);
  }
  for (const Container& container : all_containers(pod)) {
    for (const Json& known : elements(find(*container.spec, "ports"))) {
      if (!target.empty() && string_or(find(known, "name")) == target) {
        return static_cast<uint16_t>(int_or(find(known, "containerPort")));
      }
    }
  }
  return static_cast<uint16_t>(port.port);
}

std::vector<Route> routes_of(const std::vector<std::shared_ptr<const api::Service>>& services,
                             const std::vector<PlacedPod>& pods, uint16_t api_port) {
  std::vector<Route> out;
  for (const auto& service : services) {
    if (!has_own_address(*service)) continue;
    const auto endpoints = endpoints_of(*service, pods);
    for (const api::ServicePort& port : service->ports) {
      const std::string protocol = protocol_of(port);
      if (protocol != "tcp" && protocol != "udp") continue;
      Route route{.address = service->cluster_ip,
                  .port = static_cast<uint16_t>(port.port),
                  .is_udp = protocol == "udp"};
      if (is_api(*service) && api_port != 0) {
        route.targets.push_back({.address = "127.0.0.1", .port = api_port, .is_host = true});
      }
      for (const Endpoint& endpoint : endpoints) {
        route.targets.push_back(
            {.address = endpoint.address, .port = target_port(port, *endpoint.pod)});
      }
      out.push_back(std::move(route));
    }
  }
  return out;
}

std::vector<std::pair<std::string, std::string>> service_variables(
    const std::vector<std::shared_ptr<const api::Service>>& services, const Pod& pod) {
  const bool wants_all = bool_or(find(pod.spec(), "enableServiceLinks"), true);
  std::vector<std::pair<std::string, std::string>> out;
  for (const auto& service : services) {
    const bool is_wanted = is_api(*service) || (wants_all && service->meta.ns() == pod.meta.ns());
    if (!is_wanted || !has_own_address(*service) || service->ports.empty()) continue;
    const std::string name = shouted(service->meta.name());
    const std::string& ip = service->cluster_ip;
    const auto first = service->ports.front();
    out.emplace_back(name + "_SERVICE_HOST", ip);
    out.emplace_back(name + "_SERVICE_PORT", std::to_string(first.port));
    out.emplace_back(name + "_PORT", fmt::format("{}://{}:{}", protocol_of(first), ip, first.port));
    for (const api::ServicePort& port : service->ports) {
      if (!port.name.empty()) {
        out.emplace_back(name + "_SERVICE_PORT_" + shouted(port.name), std::to_string(port.port));
      }
      const std::string protocol = protocol_of(port);
      const std::string prefix = fmt::format("{}_PORT_{}_{}", name, port.port, shouted(protocol));
      out.emplace_back(prefix, fmt::format("{}://{}:{}", protocol, ip, port.port));
      out.emplace_back(prefix + "_PROTO", protocol);
      out.emplace_back(prefix + "_PORT", std::to_string(port.port));
      out.emplace_back(prefix + "_ADDR", ip);
    }
  }
  return out;
}

void ChangingGroups::note(std::string zone, Instant now) {
  std::erase_if(until_, [now](const auto& entry) { return entry.second <= now; });
  until_[std::move(zone)] = now + kGroupChanges;
}

void ChangingGroups::note(const api::Service& service, Instant now) {
  if (!has_own_address(service)) note(zone_of(service), now);
}

void ChangingGroups::note(const Pod& pod, Instant now) {
  const auto subdomain = subdomain_of(pod);
  if (!subdomain.empty()) note(zone_of(subdomain, pod.meta.ns()), now);
}

namespace {

// Pods that it selects and does not lead to (yet).
void add_missing(dns::Table& table, const api::Service& service,
                 const std::vector<PlacedPod>& pods) {
  for (const PlacedPod& placed : pods) {
    const Pod& pod = *placed.pod;
    if (pod.is_finished() || !is_selected(service, pod) || is_published(service, placed)) continue;
    const bool is_named = subdomain_of(pod) == service.meta.name();
    const std::string name = is_named ? asked_name(pod) : "";
    if (is_starting(pod)) {
      table.await(zone_of(service));
      if (!name.empty()) table.await(name);
    } else if (!name.empty() && !pod.meta.is_being_deleted()) {
      table.deny(name);
    }
  }
}

}  // namespace

dns::Table names_of(const std::vector<std::shared_ptr<const api::Service>>& services,
                    const std::vector<PlacedPod>& pods, const ChangingGroups& groups) {
  dns::Table table;
  auto changing = groups.all();
  for (const auto& service : services) {
    const std::string zone = zone_of(*service);
    if (has_own_address(*service)) {
      changing.erase(zone);
      add(table, zone, service->cluster_ip);
      add_ports(table, *service, zone, zone, nullptr);
      continue;
    }
    for (const Endpoint& endpoint : endpoints_of(*service, pods)) {
      const std::string own = name_of(endpoint, *service);
      add(table, zone, endpoint.address);
      add(table, own, endpoint.address);
      add_ports(table, *service, zone, own, endpoint.pod);
    }
    add_missing(table, *service, pods);
  }
  for (const PlacedPod& placed : pods) {
    if (!placed.pod->is_finished()) continue;
    if (const auto name = asked_name(*placed.pod); !name.empty()) table.deny(name);
  }
  for (const auto& [zone, until] : changing) table.await_below(zone, until);
  return table;
}

}  // namespace grapnel::local::kubelet
