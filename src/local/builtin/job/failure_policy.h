// podFailurePolicy: what the failure of a pod means.
#pragma once

#include <optional>
#include <string>

#include "local/builtin/job/job.h"

namespace grapnel::local {

struct PolicyMatch {
  FailureAction action = FailureAction::Count;
  std::string message;  // for FailJob
};

// The first rule that the failed pod meets; nothing when none does, or there is no policy.
std::optional<PolicyMatch> match_failure_policy(const Job& job, const JobPod& pod);

}  // namespace grapnel::local
