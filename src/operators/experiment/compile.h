// What an Experiment becomes: one resource of another kind, owned by it.
#pragma once

#include "api/experiment.h"

namespace grapnel::experiment {

struct Compiled {
  const kube::Kind* kind = nullptr;
  Json object;
  std::optional<Json> tensorboard;  // a Pod beside it, where one is asked for and has what to show
};

struct CompileOptions {
  // On the laptop: where experiments have their folders, one for each namespace and name. "": they
  // have none.
  std::string_view folders;
};

// jax, pytorch, xgboost and jobset become a JobSet of the experiment's own name. An invalid spec is
// an Error with all its faults.
Result<Compiled> compile(const api::Experiment& experiment, const CompileOptions& options = {});

}  // namespace grapnel::experiment
