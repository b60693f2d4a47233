// metrics.k8s.io: what pods use now, as `kubectl top` asks for it. On other clusters another server
// answers for it; here the node knows.
#pragma once

#include "local/apiserver/api.h"

namespace grapnel::local {

// Served for as long as there is a node to ask.
TypePtr pod_metrics_type();
Task<Answer<Reply>> read_pod_metrics(Api& api, Call& call);

}  // namespace grapnel::local
