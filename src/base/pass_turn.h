// For a Task that has much to do and never waits.
#pragma once

#include "base/async.h"

namespace grapnel {

// Lets everything else that is ready on the loop run first.
Task<> pass_turn();

}  // namespace grapnel
