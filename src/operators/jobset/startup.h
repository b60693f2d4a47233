// In what order the ReplicatedJobs of a JobSet start.
#pragma once

#include "api/jobset.h"
#include "operators/jobset/status.h"

namespace grapnel::jobset {

bool starts_in_order(const api::JobSet& jobset);

// All of its Jobs are ready, or have ended already.
bool has_started(const api::ReplicatedJob& replicated, const StatusDraft& status);

// All that it depends on have got to where they must be.
bool dependencies_reached(const api::JobSet& jobset, const api::ReplicatedJob& replicated,
                          const StatusDraft& status);

}  // namespace grapnel::jobset
