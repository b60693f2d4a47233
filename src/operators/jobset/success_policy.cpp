#include "operators/jobset/success_policy.h"

#include <algorithm>

namespace grapnel::jobset {
namespace {

bool counts(const api::SuccessPolicy& policy, std::string_view replicated_job) {
  return policy.targets.empty() ||
         std::ranges::find(policy.targets, replicated_job) != policy.targets.end();
}

int64_t jobs_to_succeed(const api::JobSet& jobset) {
  const auto& policy = jobset.spec.success_policy;
  if (policy.op == api::SuccessOperator::Any) return 1;
  int64_t jobs = 0;
  for (const auto& replicated : jobset.spec.replicated_jobs) {
    if (counts(policy, replicated.name)) jobs += replicated.replicas;
  }
  return jobs;
}

}  // namespace

bool has_succeeded(const api::JobSet& jobset, const Children& children) {
  // Nothing to run is no success yet: a Job must have been there to succeed.
  if (children.successful.empty()) return false;
  const auto succeeded = std::ranges::count_if(children.successful, [&](const ChildJob* job) {
    return counts(jobset.spec.success_policy, job->place->replicated_job);
  });
  return succeeded >= jobs_to_succeed(jobset);
}

}  // namespace grapnel::jobset
