// The end of a finished JobSet's time to live.
#pragma once

#include "api/jobset.h"
#include "runtime/plan.h"

namespace grapnel::jobset {

// The JobSet must be finished.
runtime::Plan expire(const api::JobSet& jobset, Time now);

}  // namespace grapnel::jobset
