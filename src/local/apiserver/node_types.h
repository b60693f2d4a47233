// What only the node knows and nobody stores: what pods use now (metrics.k8s.io, which `kubectl
// top` asks; on other clusters another server answers), and which logs there are of pods that are
// gone (local.grapnel.dev; they are read by the pod's name, like any log).
#pragma once

#include "local/apiserver/api.h"

namespace grapnel::local {

// Served for as long as there is a node to ask.
std::vector<TypePtr> node_types();
bool is_of_node(const ResourceType& type);
Task<Answer<Reply>> read_from_node(Api& api, Call& call);

}  // namespace grapnel::local
