// Keeps the number of pods of a ReplicaSet, and rolls a Deployment from one ReplicaSet to the next.
#pragma once

#include <vector>

#include "local/builtin/workload/workload.h"
#include "runtime/plan.h"

namespace grapnel::local {

struct ReplicaSetObserved {
  const ReplicaSet& set;
  std::vector<const WorkloadPod*> pods;     // that it controls
  std::vector<const WorkloadPod*> orphans;  // of its namespace that nobody controls
};
runtime::Plan plan(const ReplicaSetObserved& observed, Time now);

struct DeploymentObserved {
  const Deployment& deployment;
  std::vector<const ReplicaSet*> sets;  // that it controls
};
runtime::Plan plan(const DeploymentObserved& observed, Time now);

}  // namespace grapnel::local
