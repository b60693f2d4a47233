// An experiment with all that was made for it, as a tree for the terminal.
#pragma once

#include <string>
#include <vector>

#include "api/experiment.h"
#include "api/job.h"
#include "api/pod.h"

namespace grapnel::cli {

struct ExperimentTree {
  const api::Experiment& experiment;
  std::vector<const api::Job*> jobs;  // each in the order it is shown
  std::vector<const api::Pod*> pods;
};

// One line for each object, with its state, and why where it is not well.
std::string render_tree(const ExperimentTree& tree, Time now);

// "2/3": processes that run or have ended well, of those wanted.
std::string processes(const api::ExperimentStatus& status);
// How long it has run, or ran.
std::string age(const api::Experiment& experiment, Time now);

}  // namespace grapnel::cli
