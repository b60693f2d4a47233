// How an experiment stands, read from its pods, in words for a person.
#pragma once

#include "operators/experiment/components.h"
#include "operators/experiment/plan.h"

namespace grapnel::experiment {

struct Outcome {
  api::Phase phase = api::Phase::Pending;
  std::string reason;
  std::string message;
  std::optional<int64_t> exit_code;  // of the process that failed first, where one did
};

std::vector<api::ComponentStatus> statuses_of(const Components& components,
                                              const Observed& observed);
// While it runs, or waits: why.
Outcome progress_of(const Observed& observed, const std::vector<api::ComponentStatus>& components);
// After it ended.
Outcome outcome_of(const ChildState::End& end, const Observed& observed);

}  // namespace grapnel::experiment
