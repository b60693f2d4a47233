// PersistentVolumeClaims that a JobSet's Jobs share.
#pragma once

#include <vector>

#include "api/jobset.h"
#include "runtime/plan.h"

namespace grapnel::jobset {

// The volumes that a pod needs for the claims its containers mount.
std::vector<Json> volumes_for(const api::JobSet& jobset, const JsonObject& pod_spec);

bool mounts_volume(const Json& pod_spec, std::string_view volume);

// The claims to be there; with retention Delete they belong to the JobSet.
std::vector<runtime::Create> claims_of(const api::JobSet& jobset);

}  // namespace grapnel::jobset
