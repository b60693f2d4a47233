// Deleting Jobs, and not waiting for ever until they are gone.
#pragma once

#include <vector>

#include "api/job.h"
#include "api/jobset.h"
#include "operators/jobset/plan.h"
#include "runtime/plan.h"

namespace grapnel::jobset {

runtime::ObjectRef ref_to(const api::Job& job);

// In the foreground: a Job stays until its pods are gone. Those in deletion already are left alone.
runtime::Plan delete_jobs(const std::vector<const api::Job*>& jobs);

// A pod on a lost node never ends, and holds its Job in deletion. Once a Job has been so for long
// enough, it no longer waits for its pods: its name becomes free and the restart goes on. Where
// BlockingRecreate promises that no pod of the earlier run is left, the pods on lost nodes are
// deleted by force instead, and pods on nodes that answer are waited for.
runtime::Plan release_stuck(const Observed& observed, const std::vector<const api::Job*>& jobs,
                            Time now);

}  // namespace grapnel::jobset
