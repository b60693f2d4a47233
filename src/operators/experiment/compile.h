// What an Experiment becomes: one resource of another kind, owned by it.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/quantity.h"
#include "operators/experiment/components.h"

namespace grapnel::experiment {

// Of a component: how many pods it has at a time, and what each of them asks for.
struct ComponentTotal {
  std::string name;
  std::string shape;  // "2 Jobs of 3 pods"
  int64_t pods = 0;
  std::map<std::string, Quantity, std::less<>> requests;
  std::map<std::string, Quantity, std::less<>> limits;
};

struct Compiled {
  const kube::Kind* kind = nullptr;
  Json object;
  std::vector<ComponentTotal> totals;
};

struct CompileOptions {
  // On the laptop: where experiments have their folders, one for each namespace and name. "": they
  // have none.
  std::string_view folders;
};

// jax, pytorch, xgboost and jobset become a JobSet of the experiment's own name.
const kube::Kind& child_kind(api::Operator op);
// Of components that check() found; it does not fail.
Compiled compile(const api::Experiment& experiment, const Components& components,
                 const CompileOptions& options = {});
// Both in one. An invalid experiment is an Error with all its faults.
Result<Compiled> check_and_compile(const api::Experiment& experiment,
                                   const CompileOptions& options = {});

// A Pod beside the child, where one is asked for and has what to show.
bool has_tensorboard(const api::Experiment& experiment, const CompileOptions& options);
Json tensorboard_of(const api::Experiment& experiment, const CompileOptions& options);

}  // namespace grapnel::experiment
