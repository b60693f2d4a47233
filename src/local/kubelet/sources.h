// The ConfigMaps, Secrets and similar objects that a pod's environment and volumes need.
#pragma once

#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/async.h"
#include "base/result.h"
#include "document/json.h"
#include "kube/client.h"
#include "local/kubelet/pod.h"

namespace grapnel::local::kubelet {

// All in the pod's own namespace.
struct SourceNames {
  std::set<std::string, std::less<>> config_maps;
  std::set<std::string, std::less<>> secrets;
  std::set<std::string, std::less<>> claims;
  std::vector<Json> tokens;  // serviceAccountToken sources of projected volumes
  std::string service_account = "default";
};
SourceNames sources_of(const Pod& pod);

// By name; objects that do not exist are missing here.
struct Sources {
  std::map<std::string, Json, std::less<>> config_maps;
  std::map<std::string, Json, std::less<>> secrets;
  std::map<std::string, Json, std::less<>> volumes;  // PersistentVolumes, by the claim bound to it
  std::map<std::string, std::string, std::less<>> tokens;  // by token_key()

  // nullptr: there is none of that name.
  const Json* config_map(std::string_view name) const;
  const Json* secret(std::string_view name) const;
};

// The keys of a ConfigMap or Secret with their contents, decoded.
std::map<std::string, std::string, std::less<>> contents_of(const Json& source);

// The key of a token: the parameters of its request.
std::string token_key(const Json& request);

// The token that a pod is given to speak to the API server, unless it wants none.
bool wants_api_access(const Pod& pod);
Json api_token_request();

// An Error only when the API server could not be asked.
Task<Result<Sources>> fetch_sources(kube::Client& client, Pod pod, bool with_api_token);

}  // namespace grapnel::local::kubelet
