// The Jobs of a JobSet, sorted by what became of them.
#pragma once

#include <string_view>
#include <unordered_set>
#include <vector>

#include "api/jobset.h"
#include "operators/jobset/child_job.h"

namespace grapnel::jobset {

// Why a Job failed, and since when.
struct JobFailure {
  std::string_view reason;
  std::string_view message;
  Time since;
};

struct FailedJob {
  const ChildJob* job = nullptr;
  JobFailure why;
};

struct Children {
  // Of the current run.
  std::vector<const ChildJob*> active;
  std::vector<const ChildJob*> successful;
  std::vector<FailedJob> failed;
  // Of an earlier run: to be deleted.
  std::vector<const ChildJob*> previous;
  // Whether there is one, of whatever run, for each that the spec asks for.
  bool all_exist = false;
  // Where some are missing: of all that exist, also of those that are no part of the JobSet by
  // their labels.
  std::unordered_set<std::string_view> names;
};

// How often the Job was restarted alone, as the status counts it.
int32_t job_restarts(const api::JobSet& jobset, std::string_view replicated_job, int32_t index);

// A Job has failed once its failure is certain (FailureTarget): its pods may take minutes more to
// end, and none of them can change the outcome. Another controller than Kubernetes' own may say why
// in Failed only: then that is waited for, as it always is with `strict`.
Children sort_children(const api::JobSet& jobset, const std::vector<const ChildJob*>& jobs,
                       bool strict);

}  // namespace grapnel::jobset
