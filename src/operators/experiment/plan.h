// Runs an Experiment: creates what it compiles to, follows it, and says in one sentence how it
// stands.
#pragma once

#include <vector>

#include "api/event.h"
#include "api/experiment.h"
#include "api/jobset.h"
#include "api/pod.h"
#include "runtime/plan.h"

namespace grapnel::experiment {

inline constexpr std::string_view kExperimentLabel = "grapnel.dev/experiment";
inline constexpr std::string_view kComponentLabel = "grapnel.dev/component";
inline constexpr std::string_view kRankLabel = "batch.kubernetes.io/job-completion-index";

struct Observed {
  const api::Experiment& experiment;
  const api::JobSet* child = nullptr;         // of the experiment's name, whoever owns it
  std::vector<const api::Pod*> pods;          // labelled with the experiment's name
  std::vector<const api::Event*> refusals;    // why Jobs of the child could not create pods
  const runtime::Refusal* refused = nullptr;  // what the server answered to the last plan
  const api::Pod* tensorboard = nullptr;      // beside the experiment's own pods
  std::string_view folders = "";              // see CompileOptions
};

runtime::Plan plan(const Observed& observed, Time now);

}  // namespace grapnel::experiment
