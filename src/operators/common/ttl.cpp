#include "operators/common/ttl.h"

namespace grapnel::operators {

runtime::Plan expire(runtime::ObjectRef object, Time end, std::optional<int64_t> ttl_seconds,
                     Time now, runtime::Delete::Propagation propagation) {
  runtime::Plan plan;
  if (!ttl_seconds) return plan;
  const Time due = end + seconds(*ttl_seconds);
  if (now < due) {
    plan.look_again_in(due - now);
  } else {
    plan.add(runtime::Delete{
        .target = std::move(object), .propagation = propagation, .grace_seconds = std::nullopt});
  }
  return plan;
}

}  // namespace grapnel::operators
