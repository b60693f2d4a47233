// An experiment with all that was made for it, as a tree for the terminal.
#pragma once

#include <string>
#include <vector>

#include "api/experiment.h"
#include "api/pod.h"

namespace grapnel::cli {

struct ExperimentTree {
  const api::Experiment& experiment;
  std::vector<const api::Pod*> pods;  // with their labels
};

// The experiment, its components and their processes, a line each: how it stands, and why where it
// is not well.
std::string render_tree(const ExperimentTree& tree, Time now);

// "2/3": processes that run or have ended well, of those wanted.
std::string processes(const api::ExperimentStatus& status);
// How long it has run, or ran.
std::string age(const api::Experiment& experiment, Time now);

}  // namespace grapnel::cli
