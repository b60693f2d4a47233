#include "operators/jobset/deletion.h"

#include <algorithm>

#include "operators/jobset/names.h"

namespace grapnel::jobset {
namespace {

constexpr std::string_view kForegroundDeletion = "foregroundDeletion";
constexpr Duration kPatience = minutes(5);

// Pods may take their grace period and must then be given time to be seen as gone.
Duration patience(const api::JobSet& jobset) {
  const auto asked = parse_go_duration(jobset.meta.annotations.get(keys::kStuckDeletionTimeout));
  if (asked && *asked > Duration::zero()) return *asked;
  int64_t grace = 30;
  for (const auto& replicated : jobset.spec.replicated_jobs) {
    if (const Json* pod = replicated.pod_spec()) {
      grace = std::max(grace, int_or(find(*pod, "terminationGracePeriodSeconds"), 30));
    }
  }
  return kPatience + seconds(std::min<int64_t>(grace, 24 * 3600));
}

runtime::Patch without_waiting(const api::Job& job) {
  JsonArray finalizers;
  for (const Interned& finalizer : job.meta.finalizers) {
    if (finalizer.view() != kForegroundDeletion) finalizers.emplace_back(finalizer.view());
  }
  return {.target = ref_to(job),
          .body = JsonObject{{"metadata", JsonObject{{"finalizers", std::move(finalizers)}}}},
          .subresource = "",
          .if_version = job.meta.resource_version};
}

}  // namespace

runtime::ObjectRef ref_to(const api::Job& job) {
  return {.kind = &kube::kinds::kJob, .key = job.meta.key, .uid = job.meta.uid};
}

runtime::Plan delete_jobs(const std::vector<const api::Job*>& jobs) {
  runtime::Plan plan;
  for (const api::Job* job : jobs) {
    if (job->meta.is_being_deleted()) continue;
    plan.add(runtime::Delete{.target = ref_to(*job),
                             .propagation = runtime::Delete::Propagation::kForeground,
                             .grace_seconds = std::nullopt});
  }
  return plan;
}

runtime::Plan release_stuck(const api::JobSet& jobset, const std::vector<const api::Job*>& jobs,
                            Time now) {
  runtime::Plan plan;
  const auto& policy = jobset.spec.failure_policy;
  if (policy && policy->restart_strategy == api::RestartStrategy::BlockingRecreate) return plan;
  const Duration patient = patience(jobset);
  for (const api::Job* job : jobs) {
    const auto& finalizers = job->meta.finalizers;
    if (!job->meta.deleted ||
        std::ranges::find(finalizers, kForegroundDeletion, &Interned::view) == finalizers.end()) {
      continue;
    }
    const Time due = *job->meta.deleted + patient;
    if (now < due) {
      plan.look_again_in(due - now);
    } else {
      plan.add(without_waiting(*job));
    }
  }
  return plan;
}

}  // namespace grapnel::jobset
