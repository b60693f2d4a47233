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

// Makes a pod template one of the group's.
void join_gang(const api::JobSet& jobset, JsonObject& pod_template);

}  // namespace grapnel::jobset
