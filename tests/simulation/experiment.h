// Experiments under the simulator: two controllers in a row, with the JobSets between them.
#pragma once

#include <memory>

#include "tests/simulation/subject.h"

namespace grapnel::simulation {

std::unique_ptr<Subject> make_experiment_subject();

}  // namespace grapnel::simulation
