// For a Task that has much to do without ever waiting.
#pragma once

#include "base/async.h"

namespace grapnel {

// Lets everything else that is ready on the loop run first.
Task<> pass_turn();

}  // namespace grapnel
