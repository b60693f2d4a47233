// The end of an object that has been over for long enough.
#pragma once

#include <cstdint>
#include <optional>

#include "base/time.h"
#include "runtime/plan.h"

namespace grapnel::operators {

// Deletes it once so many seconds have passed since its end, and looks again then; without a time
// to live it stays.
runtime::Plan expire(
    runtime::ObjectRef object, Time end, std::optional<int64_t> ttl_seconds, Time now,
    runtime::Delete::Propagation propagation = runtime::Delete::Propagation::kBackground);

}  // namespace grapnel::operators
