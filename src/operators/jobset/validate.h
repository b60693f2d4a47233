// What a JobSet may not say, each fault with the path of its field. The schema has been checked
// already; these are the rules that it cannot express.
#pragma once

#include <vector>

#include "api/jobset.h"

namespace grapnel::jobset {

std::vector<Cause> validate(const api::JobSet& jobset);

// A change of an existing JobSet: what is immutable, and what may change while it is suspended
// (labels, annotations, node selector, tolerations and gates of pods) or runs (the number of pods
// of Indexed Jobs).
std::vector<Cause> validate_update(const api::JobSet& before, const api::JobSet& after);

// The same, but for what the original controller refuses, and no more.
std::vector<Cause> validate_strictly(const api::JobSet& jobset);
std::vector<Cause> validate_update_strictly(const api::JobSet& before, const api::JobSet& after);

}  // namespace grapnel::jobset
