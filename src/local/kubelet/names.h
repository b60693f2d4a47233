// What the cluster's names mean: pods and services as DNS knows them. Pure.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "api/service.h"
#include "local/kubelet/pod.h"
#include "local/node/dns.h"

namespace grapnel::local::kubelet {

// A pod and its address, which the node knows before the pod's status says it.
struct PlacedPod {
  std::shared_ptr<const Pod> pod;
  std::string address;  // empty: none yet
};
// Whether a pod that was `before` and is `after` may have another name, address or route.
bool may_move(const Pod& before, const Pod& after);

// The addresses behind a service: of pods that it selects and that are ready (or it asks for all).
struct Endpoint {
  const Pod* pod = nullptr;
  std::string address;
};
std::vector<Endpoint> endpoints_of(const api::Service& service, const std::vector<PlacedPod>& pods);

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
                             const std::vector<PlacedPod>& pods, uint16_t api_port);

// KUBERNETES_SERVICE_HOST and its kind: of the API itself, and of the services of the pod's
// namespace unless it wants none.
std::vector<std::pair<std::string, std::string>> service_variables(
    const std::vector<std::shared_ptr<const api::Service>>& services, const Pod& pod);

// Groups of pods that are being made or replaced: of those that call each other by names below one
// headless service, some came or went a moment ago. One of them may ask for another's name before
// that one's pod is made.
class ChangingGroups {
 public:
  // A headless service was made.
  void note(const api::Service& service, Instant now);
  // A pod was made or is gone.
  void note(const Pod& pod, Instant now);

  // A service's full name, and until when to wait for names below it.
  const std::map<std::string, Instant>& all() const { return until_; }

 private:
  void note(std::string zone, Instant now);
  std::map<std::string, Instant> until_;
};

// A question for the name of a pod that is there and has no address yet waits for it, and so does
// one for a name below a headless service that no pod has, while the group changes. Any other name
// that nobody has does not exist.
dns::Table names_of(const std::vector<std::shared_ptr<const api::Service>>& services,
                    const std::vector<PlacedPod>& pods, const ChangingGroups& groups);

}  // namespace grapnel::local::kubelet
