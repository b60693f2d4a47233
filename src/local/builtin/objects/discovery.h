// Finds out which kinds a server serves, from the aggregated form of its discovery.
#pragma once

#include <vector>

#include "document/json.h"
#include "kube/kind.h"

namespace grapnel::local {

// The kinds that can be listed, watched and deleted, each once, in the version that the server
// prefers. `document` is an APIGroupDiscoveryList. The texts of the kinds live for ever.
std::vector<kube::Kind> kinds_of_discovery(const Json& document);

}  // namespace grapnel::local
