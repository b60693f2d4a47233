// Runs an Experiment: creates what it compiles to, follows it, and says in one sentence how it
// stands.
#pragma once

#include <vector>

#include "api/event.h"
#include "api/experiment.h"
#include "api/pod.h"
#include "operators/experiment/child_state.h"
#include "runtime/plan.h"

namespace grapnel::experiment {

struct Observed {
  const api::Experiment& experiment;
  std::optional<ChildState> child = {};       // of the experiment's name, whoever owns it
  std::vector<const api::Pod*> pods;          // the child's own
  std::vector<const api::Event*> refusals;    // why Jobs of the child could not create pods
  const runtime::Refusal* refused = nullptr;  // what the server answered to the last plan
  const api::Pod* tensorboard = nullptr;      // beside the experiment's own pods
  std::string_view folders = "";              // see CompileOptions
};

runtime::Plan plan(const Observed& observed, Time now);

}  // namespace grapnel::experiment
