#include "operators/jobset/ttl.h"

#include "operators/jobset/names.h"
#include "operators/jobset/status.h"

namespace grapnel::jobset {

runtime::Plan expire(const api::JobSet& jobset, Time now) {
  runtime::Plan plan;
  if (!jobset.spec.ttl_seconds_after_finished) return plan;
  const auto& all = jobset.status.conditions;
  const auto* end = api::find_condition(all, api::is_condition_true(all, conditions::kCompleted)
                                                 ? conditions::kCompleted
                                                 : conditions::kFailed);
  const Time due = end->last_transition_time + seconds(*jobset.spec.ttl_seconds_after_finished);
  if (now < due) {
    plan.look_again_in(due - now);
  } else {
    plan.add(runtime::Delete{.target = ref_to(jobset),
                             .propagation = runtime::Delete::Propagation::kForeground,
                             .grace_seconds = std::nullopt});
  }
  return plan;
}

}  // namespace grapnel::jobset
