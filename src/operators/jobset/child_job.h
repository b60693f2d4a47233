// A Job of a JobSet as its planner reads it.
#pragma once

#include <optional>

#include "api/job.h"
#include "operators/common/object.h"

namespace grapnel::jobset {

// Which Job of the JobSet it is: its labels, read once.
struct JobPlace {
  Interned replicated_job;
  int32_t index = 0;
  int32_t restart_attempt = 0;
  std::optional<int32_t> job_restart_attempt;  // only where Jobs restart alone
  bool operator==(const JobPlace&) const = default;
};

struct ChildJob : api::Job {
  std::optional<JobPlace> place;  // unset: its labels were tampered with
  bool operator==(const ChildJob& other) const;
};

// What a cache of Jobs must keep for this planner. The labels are read into `place`.
Result<ChildJob> decode_child_job(JsonView object);

}  // namespace grapnel::jobset

template <>
inline constexpr const grapnel::kube::Kind*
    grapnel::operators::kBuiltinKind<grapnel::jobset::ChildJob> = &grapnel::kube::kinds::kJob;
