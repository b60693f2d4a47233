// The Job controller of the laptop cluster: all of Kubernetes' batch/v1 Job, as one pure planner.
#pragma once

#include <vector>

#include "local/builtin/job/job.h"
#include "runtime/plan.h"

namespace grapnel::local {

struct JobObserved {
  const Job* job = nullptr;         // null: it is gone, and its pods may still hold finalizers
  std::vector<const JobPod*> pods;  // those whose controller it is (or was)
};

runtime::Plan plan(const JobObserved& observed, Time now);

}  // namespace grapnel::local
