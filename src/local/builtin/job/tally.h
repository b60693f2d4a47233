// Counts the pods of a Job, each exactly once.
//
// A pod carries a finalizer until it is counted, so that none is lost when somebody deletes it.
// Counting takes two plans: the first writes the pod's uid (or index) into the status; the second
// removes the finalizer and then turns the uid into a number. A crash between any two writes
// repeats a step and counts nothing twice.
#pragma once

#include <string>
#include <vector>

#include "local/builtin/job/indexes.h"
#include "local/builtin/job/job.h"

namespace grapnel::local {

// Why a Job fails, as its condition says it.
struct Verdict {
  std::string reason;
  std::string message;
};

struct Tally {
  std::vector<const JobPod*> active;       // pending or running
  std::vector<const JobPod*> terminating;  // deletion asked for, still there
  std::vector<const JobPod*> failed;       // all failed ones still there
  std::vector<const JobPod*> to_release;   // counted: their finalizer goes now
  int64_t ready = 0;
  int64_t succeeded = 0;  // counted, and noted in this round
  int64_t failures = 0;
  Indexes completed;
  Indexes failed_indexes;
  UncountedPods uncounted;  // noted, to be released in the next plan
  std::optional<Verdict> policy_verdict;

  bool has_uncounted() const { return !uncounted.succeeded.empty() || !uncounted.failed.empty(); }
};

Tally tally(const Job& job, const std::vector<const JobPod*>& pods);

// The counters of the status, from a tally in which released pods are numbers and noted ones are
// uids.
void write_counts(const Job& job, const Tally& tally, JobStatus& status);

}  // namespace grapnel::local
