// A Service as planners read it.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "document/json_view.h"
#include "kube/meta.h"

namespace grapnel::api {

struct ServicePort {
  Interned name;
  int32_t port = 0;
  int32_t node_port = 0;    // 0: none
  std::string target_port;  // a number or a name
  Interned protocol;        // empty: TCP
  bool operator==(const ServicePort&) const = default;
};

struct Service {
  kube::Meta meta;
  Interned type;           // ClusterIP, NodePort, LoadBalancer …
  std::string cluster_ip;  // "None" when headless
  bool publish_not_ready_addresses = false;
  std::vector<ServicePort> ports;
  kube::StringMap selector;
  bool operator==(const Service&) const = default;
};

Result<Service> decode_service(JsonView object, const kube::MetaOptions& kept = {});

}  // namespace grapnel::api
