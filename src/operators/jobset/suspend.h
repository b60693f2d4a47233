// Suspending the Jobs of a JobSet, resuming them, and changing the number of their pods.
#pragma once

#include "api/job.h"
#include "api/jobset.h"
#include "runtime/plan.h"

namespace grapnel::jobset {

runtime::Patch suspend_job(const api::Job& job);

// Resumes a suspended Job with the pod template of the JobSet as it is now: a queue may have added
// labels, annotations, node selectors, tolerations or scheduling gates meanwhile. They are added to
// the Job's own, since others may have written there too.
runtime::Patch resume_job(const api::Job& job, const api::ReplicatedJob& replicated);

// A Job that ran before must forget when it started, or its pod template cannot be changed.
runtime::Patch forget_start(const api::Job& job);

// Elastic: the number of pods of a running Indexed Job follows the JobSet, where parallelism and
// completions are equal. Nothing when they agree.
std::optional<runtime::Patch> scale_job(const api::Job& job, const api::ReplicatedJob& replicated);

}  // namespace grapnel::jobset
