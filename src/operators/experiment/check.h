// Whether an Experiment can be run, and with which components: all that compile() relies on. It is
// cheap, so admission, `grapnel validate` and the planner ask it each time.
#pragma once

#include "operators/experiment/components.h"

namespace grapnel::experiment {

// An error has all faults, each with the path of its field.
Result<Components> check(const api::Experiment& experiment);

}  // namespace grapnel::experiment
