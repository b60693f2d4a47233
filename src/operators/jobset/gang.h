// Gang scheduling by Volcano, for JobSets that ask for it: all pods get a place at once, or none.
#pragma once

#include <optional>

#include "api/jobset.h"
#include "runtime/plan.h"

namespace grapnel::jobset {

inline constexpr kube::Kind kPodGroup{"scheduling.volcano.sh", "v1beta1", "PodGroup", "podgroups"};

// By the annotation grapnel.dev/gang-scheduler: volcano.
bool wants_gang(const api::JobSet& jobset);

// The group of all its pods.
runtime::Apply pod_group(const api::JobSet& jobset);

// Makes the pod template of a ReplicatedJob one of the group's, of which it is a task.
void join_gang(const api::JobSet& jobset, const api::ReplicatedJob& replicated,
               JsonObject& pod_template);

}  // namespace grapnel::jobset
