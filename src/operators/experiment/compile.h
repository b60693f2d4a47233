// What an Experiment becomes: one resource of another kind, owned by it.
#pragma once

#include "api/experiment.h"

namespace grapnel::experiment {

struct Compiled {
  const kube::Kind* kind = nullptr;
  Json object;
};

// jax, pytorch, xgboost and jobset become a JobSet of the experiment's own name. An invalid spec is
// an Error with all its faults.
Result<Compiled> compile(const api::Experiment& experiment);

}  // namespace grapnel::experiment
