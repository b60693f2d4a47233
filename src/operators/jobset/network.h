// The headless Service through which a JobSet's pods find each other by name.
#pragma once

#include "api/jobset.h"
#include "runtime/plan.h"

namespace grapnel::jobset {

runtime::Create headless_service(const api::JobSet& jobset);

}  // namespace grapnel::jobset
