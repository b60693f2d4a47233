// Deleting Jobs, and not waiting for ever until they are gone.
#pragma once

#include <vector>

#include "api/jobset.h"
#include "operators/jobset/child_job.h"
#include "operators/jobset/children.h"
#include "operators/jobset/plan.h"
#include "runtime/plan.h"

namespace grapnel::jobset {

// Whether no Job of a new run may begin before all of the earlier one are gone: BlockingRecreate.
bool blocks(const api::JobSet& jobset);

// A Job goes at once, and its pods after it: that costs the cluster fewer requests than a deletion
// in the foreground. With BlockingRecreate it stays until its pods are gone, as only the API server
// can promise that none is left. Those in deletion already are left alone.
runtime::Plan delete_jobs(const Observed& observed, const std::vector<const ChildJob*>& jobs);

// A Job is not made again while pods of the one before it run: it takes their name in DNS. Pods
// without a node do not run; pods that cannot end (their node is lost) are not waited for for ever.
runtime::Plan hold_names_of_running_pods(const Observed& observed, Time now, Children& children);

// A pod on a lost node never ends, and holds a Job that is deleted in the foreground. Once a Job
// has been so for long enough, it no longer waits for its pods: its name becomes free and the
// restart goes on. Where BlockingRecreate promises that no pod of the earlier run is left, the pods
// on lost nodes are deleted by force instead. Pods on nodes that answer are waited for, and looked
// at again now and then: their node may be seen to be lost later.
runtime::Plan release_stuck(const Observed& observed, const std::vector<const ChildJob*>& jobs,
                            Time now);

}  // namespace grapnel::jobset
