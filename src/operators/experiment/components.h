// The `types` of a manifest, read as its operator understands them.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "api/experiment.h"

namespace grapnel::experiment {

struct Components {
  // jax, pytorch, xgboost, jobset, elastic: sorted by name, so that the result does not depend on
  // the order in which a JSON object was stored.
  std::vector<std::pair<std::string, api::Component>> named;
  // kuberay.
  std::optional<api::RayHead> head;
  std::vector<api::RayWorkers> workers;
};

// Checks all that a description cannot say (what depends on several fields, names, the time-out's
// grammar) and reads `spec.types`. Every fault goes to `faults`.
Components validate(const api::ExperimentSpec& spec, api::Faults& faults);

// Whether all its processes meet at the first one.
bool has_coordinator(api::Operator op);

// `, did you mean "my-worker"?` for "My_Worker"; "" when there is nothing to make a name of.
std::string suggested_name(std::string_view name);

// The longest the experiment may run: `timeout`, else `activeDeadlineSeconds`, else nothing. A
// Jupyter server runs for 12 hours at most.
std::optional<seconds> deadline_of(const api::ExperimentSpec& spec);

}  // namespace grapnel::experiment
