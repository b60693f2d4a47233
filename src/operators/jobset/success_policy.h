// When a JobSet has succeeded.
#pragma once

#include "api/jobset.h"
#include "operators/jobset/children.h"

namespace grapnel::jobset {

bool has_succeeded(const api::JobSet& jobset, const Children& children);

}  // namespace grapnel::jobset
