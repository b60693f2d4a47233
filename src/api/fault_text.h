// Faults of a manifest as a person reads them: the place in the file, what was found, what is
// allowed, and what was probably meant.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "document/yaml.h"

namespace grapnel::api {

// Without those that only follow from others, from top to bottom.
std::vector<Cause> sorted_faults(std::vector<Cause> causes, const Positions& positions);

// What could stand where something is missing: as in a manifest, or nothing is said of it.
enum class Examples { kOfManifests, kNone };

// Each with its place in the file, a line or a few.
std::string format_faults(std::string_view file, const std::vector<Cause>& causes,
                          const Positions& positions, Examples examples = Examples::kOfManifests);

}  // namespace grapnel::api
