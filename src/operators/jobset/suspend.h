// Suspending the Jobs of a JobSet, resuming them, and changing the number of their pods.
#pragma once

#include "api/jobset.h"
#include "operators/jobset/child_job.h"
#include "operators/jobset/job_builder.h"
#include "runtime/plan.h"

namespace grapnel::jobset {

runtime::Patch suspend_job(const ChildJob& job);

// Resumes a suspended Job with the pod template of the JobSet as it is now: a queue may have
// written labels, annotations, node selectors, tolerations or scheduling gates there meanwhile.
// Labels and annotations are added to the Job's own. Where its pods may run is what the template
// says now, and no more: a queue that lets a JobSet go on other nodes than the last time takes the
// old selector out of the JobSet, and with both its pods could run nowhere.
runtime::Patch resume_job(const ChildJob& job, const JobBuilder& builder);

// The same, but its pods may run where the template says now and where the Job said before.
runtime::Patch resume_job_where_it_was(const ChildJob& job, const JobBuilder& builder);

// A Job that ran before must forget when it started, or its pod template cannot be changed.
runtime::Patch forget_start(const ChildJob& job);

// Elastic: the number of pods of a running Indexed Job follows the JobSet, where parallelism and
// completions are equal. Nothing when they agree.
std::optional<runtime::Patch> scale_job(const ChildJob& job, const api::ReplicatedJob& replicated);

}  // namespace grapnel::jobset
