// The JobSet planner under the simulator: Jobs that fail, nodes that get lost, operators that
// crash.
#pragma once

#include <memory>

#include "tests/simulation/subject.h"

namespace grapnel::simulation {

struct JobSetOptions {
  // Restarts that wait until no pod is left, on nodes that often get lost.
  bool blocks_and_loses_nodes = false;
};
// Of all our kinds, as they are installed in production.
WebhookConfigurations our_webhooks();

std::unique_ptr<Subject> make_jobset_subject(JobSetOptions options = {});

}  // namespace grapnel::simulation
