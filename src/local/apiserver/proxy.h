// …/pods/NAME:PORT/proxy/PATH and …/services/NAME:PORT/proxy/PATH: passes a request to a process in
// a pod, and its answer back; WebSockets too.
#pragma once

#include "http/server.h"
#include "local/apiserver/api.h"

namespace grapnel::local {

Task<> serve_proxy(Api& api, const Call& call, http::Exchange& exchange);

// "https:web:8080": the scheme, the name and the port, each but the name may be missing.
struct ProxyTarget {
  std::string scheme;
  std::string name;
  std::string port;
  bool operator==(const ProxyTarget&) const = default;
};
ProxyTarget parse_proxy_target(std::string_view text);

// The request as the process in the pod gets it, without credentials of the cluster.
std::string request_for_pod(const http::Request& request, std::string_view path);

}  // namespace grapnel::local
