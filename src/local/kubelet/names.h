// What the cluster's names mean: pods and services as DNS knows them. Pure.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "api/service.h"
#include "local/kubelet/pod.h"
#include "local/node/dns.h"

namespace grapnel::local::kubelet {

// The addresses behind a service: of pods that it selects and that are ready (or it asks for all).
struct Endpoint {
  const Pod* pod = nullptr;
  std::string address;
};
std::vector<Endpoint> endpoints_of(const api::Service& service,
                                   const std::vector<std::shared_ptr<const Pod>>& pods);

// A container's port that a service means: a number, or the name of a container's port.
uint16_t target_port(const api::ServicePort& port, const Pod& pod);

// Where connections to a service's address and port lead.
struct Target {
  std::string address;
  uint16_t port = 0;
  bool is_host = false;  // a port of the machine itself, not of a pod
  bool operator==(const Target&) const = default;
};
struct Route {
  std::string address;
  uint16_t port = 0;
  bool is_udp = false;
  std::vector<Target> targets;
  bool operator==(const Route&) const = default;
};
// Of every service that has an address of its own, TCP and UDP. `api_port`: where the API server
// listens on this machine, for the service `kubernetes`; 0: nowhere.
std::vector<Route> routes_of(const std::vector<std::shared_ptr<const api::Service>>& services,
                             const std::vector<std::shared_ptr<const Pod>>& pods,
                             uint16_t api_port);

// KUBERNETES_SERVICE_HOST and its kind: of the API itself, and of the services of the pod's
// namespace unless it wants none.
std::vector<std::pair<std::string, std::string>> service_variables(
    const std::vector<std::shared_ptr<const api::Service>>& services, const Pod& pod);

dns::Table names_of(const std::vector<std::shared_ptr<const api::Service>>& services,
                    const std::vector<std::shared_ptr<const Pod>>& pods);

}  // namespace grapnel::local::kubelet
