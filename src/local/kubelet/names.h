// What the cluster's names mean: pods and services as DNS knows them. Pure.
#pragma once

#include <memory>
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

dns::Table names_of(const std::vector<std::shared_ptr<const api::Service>>& services,
                    const std::vector<std::shared_ptr<const Pod>>& pods);

}  // namespace grapnel::local::kubelet
