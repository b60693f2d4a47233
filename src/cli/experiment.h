// One experiment, as commands ask a cluster for it.
#pragma once

#include <string>

#include "api/experiment.h"
#include "base/async.h"
#include "kube/client.h"

namespace grapnel::cli {

// What a person is told who names one that is not there.
Error no_experiment(const std::string& name);
// Whether the server does not know the kind at all: nobody has installed Grapnel there.
bool is_unknown_kind(const Error& error);
Error unknown_kind(const Error& error, const kube::Kind& kind = kube::kinds::kExperiment);
// The same error, in words where it says that something is not there: the experiment of that name,
// or Grapnel itself.
Error explained(Error error, const std::string& name = "");

Task<Result<Json>> get_experiment_object(kube::Client& client, kube::Key key);
Task<Result<api::Experiment>> get_experiment(kube::Client& client, kube::Key key);

}  // namespace grapnel::cli
