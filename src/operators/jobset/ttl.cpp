#include "operators/jobset/ttl.h"

#include "operators/common/object.h"
#include "operators/common/ttl.h"
#include "operators/jobset/status.h"

namespace grapnel::jobset {

runtime::Plan expire(const api::JobSet& jobset, Time now) {
  const auto& all = jobset.status.conditions;
  const auto* end = api::find_condition(all, api::is_condition_true(all, conditions::kCompleted)
                                                 ? conditions::kCompleted
                                                 : conditions::kFailed);
  return operators::expire(operators::ref_to(jobset), end->last_transition_time,
                           jobset.spec.ttl_seconds_after_finished, now,
                           runtime::Delete::Propagation::kForeground);
}

}  // namespace grapnel::jobset
