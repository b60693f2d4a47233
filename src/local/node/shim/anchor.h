// The anchor holds the cluster's own network (and user namespace, for an ordinary user): a bridge
// to which pods are connected, and the sockets of its DNS. It outlives grapnel, as the shims do. So
// pods keep their network while grapnel restarts, and DNS questions wait in the sockets.
#pragma once

#include "local/node/shim/config.h"

namespace grapnel::local::shim {

bool set_up_anchor(const Config& config);
void serve_anchor(const Config& config, int listener);

}  // namespace grapnel::local::shim
