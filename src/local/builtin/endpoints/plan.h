// The addresses behind a Service, as Endpoints and as EndpointSlices.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "document/json.h"
#include "document/json_view.h"
#include "kube/meta.h"
#include "runtime/plan.h"

namespace grapnel::local {

struct EndpointsService {
  struct Port {
    std::string name;
    std::string protocol = "TCP";
    int64_t port = 0;
    std::string target_name;  // of a container's port; or
    int64_t target_port = 0;
    std::optional<std::string> app_protocol;
    bool operator==(const Port&) const = default;
  };
  kube::Meta meta;
  std::vector<std::pair<std::string, std::string>> selector;
  bool external = false;  // ExternalName
  bool headless = false;
  bool publish_not_ready = false;
  std::vector<Port> ports;

  bool selects(const kube::StringMap& labels) const;
  bool operator==(const EndpointsService&) const = default;
};

struct EndpointsPod {
  struct Port {
    std::string name;
    std::string protocol;
    int64_t number = 0;
    bool operator==(const Port&) const = default;
  };
  kube::Meta meta;
  std::string address;
  std::string node;
  std::string hostname;  // where its subdomain is set
  std::string subdomain;
  bool ready = false;
  bool ended = false;
  std::vector<Port> ports;
  bool operator==(const EndpointsPod&) const = default;
};

// An Endpoints or an EndpointSlice as it is now.
struct EndpointsObject {
  kube::Meta meta;
  Json content;  // subsets; or endpoints and ports
  bool operator==(const EndpointsObject& other) const;
};

Result<EndpointsService> decode_endpoints_service(JsonView object);
Result<EndpointsPod> decode_endpoints_pod(JsonView object);
Result<EndpointsObject> decode_endpoints(JsonView object);
Result<EndpointsObject> decode_endpoint_slice(JsonView object);

struct EndpointsObserved {
  const EndpointsService* service = nullptr;  // nullptr: it is gone
  std::vector<const EndpointsPod*> pods;      // that it selects
  const EndpointsObject* endpoints = nullptr;
  std::vector<const EndpointsObject*> slices;  // that are ours
};
runtime::Plan plan(const EndpointsObserved& observed);

}  // namespace grapnel::local
