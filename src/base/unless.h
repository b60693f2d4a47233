// A Task that something else may end: for waits that can end for two reasons.
#pragma once

#include "base/async.h"

namespace grapnel {

// Runs `task` until it ends, or until `interruption` does: false when it was cut off.
Task<bool> unless(Task<> interruption, Task<> task);

}  // namespace grapnel
