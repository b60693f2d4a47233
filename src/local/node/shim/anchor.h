// The anchor holds the cluster's own network (and user namespace, for an ordinary user): a bridge
// that pods are linked to, and the sockets of its DNS. It outlives grapnel as the shims do, so pods
// keep their network while grapnel restarts, and questions to DNS wait for it in their sockets.
#pragma once

#include "local/node/shim/config.h"

namespace grapnel::local::shim {

bool set_up_anchor(const Config& config);
void serve_anchor(const Config& config, int listener);

}  // namespace grapnel::local::shim
