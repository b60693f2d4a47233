// The controllers that every Kubernetes has and the laptop cluster therefore needs: Jobs, the
// scheduler, garbage collection. They speak to the API server over HTTP like all others.
#pragma once

#include "runtime/manager.h"

namespace grapnel::local {

void add_builtin_controllers(runtime::Manager& manager);

}  // namespace grapnel::local
