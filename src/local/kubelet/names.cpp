#include "local/kubelet/names.h"

#include <algorithm>
#include <charconv>

#include "local/node/network.h"
#include "local/node/sandbox.h"

namespace grapnel::local::kubelet {
namespace {

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

// The name of a pod behind a headless service, before the service's own.
std::string name_of(const Endpoint& endpoint, const api::Service& service) {
  const auto hostname = string_or(find(endpoint.pod->spec(), "hostname"));
  const auto subdomain = string_or(find(endpoint.pod->spec(), "subdomain"));
  if (!hostname.empty() && subdomain == service.meta.name()) return std::string(hostname);
  return dashed(endpoint.address);
}

void add(dns::Table& table, const std::string& name, const std::string& address) {
  if (const auto number = parse_address(address)) table.add_address(name, *number);
}

void add_ports(dns::Table& table, const api::Service& service, const std::string& zone,
               const std::string& target, const Pod* pod) {
  for (const api::ServicePort& port : service.ports) {
    if (port.name.empty()) continue;
    const uint16_t number =
        pod == nullptr ? static_cast<uint16_t>(port.port) : target_port(port, *pod);
    table.add_service(fmt::format("_{}._tcp.{}", port.name.view(), zone),
                      {.port = number, .target = target});
  }
}

}  // namespace

std::vector<Endpoint> endpoints_of(const api::Service& service,
                                   const std::vector<std::shared_ptr<const Pod>>& pods) {
  std::vector<Endpoint> out;
  for (const auto& pod : pods) {
    if (!is_selected(service, *pod) || pod->is_finished()) continue;
    const auto address = string_or(find(pod->status(), "podIP"));
    if (address.empty()) continue;
    if (!service.publish_not_ready_addresses && (!is_ready(*pod) || pod->meta.is_being_deleted())) {
      continue;
    }
    out.push_back({.pod = pod.get(), .address = std::string(address)});
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

dns::Table names_of(const std::vector<std::shared_ptr<const api::Service>>& services,
                    const std::vector<std::shared_ptr<const Pod>>& pods) {
  dns::Table table;
  for (const auto& service : services) {
    const std::string zone =
        fmt::format("{}.{}.svc.{}", service->meta.name(), service->meta.ns(), kClusterDomain);
    const bool has_address = !service->cluster_ip.empty() && service->cluster_ip != "None";
    if (has_address) {
      add(table, zone, service->cluster_ip);
      add_ports(table, *service, zone, zone, nullptr);
      continue;
    }
    for (const Endpoint& endpoint : endpoints_of(*service, pods)) {
      const std::string own = name_of(endpoint, *service) + "." + zone;
      add(table, zone, endpoint.address);
      add(table, own, endpoint.address);
      add_ports(table, *service, zone, own, endpoint.pod);
    }
  }
  for (const auto& pod : pods) {
    const std::string address(string_or(find(pod->status(), "podIP")));
    if (address.empty() || pod->is_finished()) continue;
    add(table, fmt::format("{}.{}.pod.{}", dashed(address), pod->meta.ns(), kClusterDomain),
        address);
  }
  return table;
}

}  // namespace grapnel::local::kubelet
