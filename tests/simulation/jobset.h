// The JobSet planner under the simulator: Jobs that fail, nodes that get lost, operators that
// crash.
#pragma once

#include <memory>

#include "tests/simulation/subject.h"

namespace grapnel::simulation {

std::unique_ptr<Subject> make_jobset_subject();

}  // namespace grapnel::simulation
