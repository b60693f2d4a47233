// How the child of an experiment stands, whatever its kind. Planner and progress ask nothing else
// of it; each kind that an experiment can become has one function here.
#pragma once

#include <optional>
#include <string>

#include "api/jobset.h"
#include "api/pod.h"
#include "runtime/plan.h"

namespace grapnel::experiment {

struct ChildState {
  struct End {
    enum class How { kSucceeded, kFailed, kTimedOut };
    How how = How::kFailed;
    std::string reason;  // in a word, as the child has it
    std::string message;
  };

  runtime::ObjectRef ref;
  kube::Uid owner;  // of its controller
  // Its controller is an Experiment of the same name: this one, or one that was deleted.
  bool is_of_experiment = false;
  bool is_suspended = false;
  int64_t restarts = 0;
  std::optional<End> ended;

  // Ends its pods and keeps all that can be read about them.
  runtime::Patch suspension() const;
  // A pod of an earlier child of the same name is not its own.
  bool owns(const api::Pod& pod) const;
};

ChildState jobset_child_state(const api::JobSet& jobset);

}  // namespace grapnel::experiment
