// Adds our controllers to a Manager, and says what they need.
#pragma once

#include <string>
#include <vector>

#include "controllers/table.h"
#include "controllers/wiring.h"

namespace grapnel::controllers {

// Those of the kinds given; all where none is given.
void add_controllers(runtime::Manager& manager, const WiringOptions& options,
                     std::vector<const OurKind*> kinds = {});

// "jobset,experiment" as its kinds; an error names the one that is not known.
Result<std::vector<const OurKind*>> parse_controllers(std::string_view names);

// All that our controllers watch and write.
std::vector<Permission> permissions();

// The CustomResourceDefinitions of our kinds.
std::vector<Json> crds();

}  // namespace grapnel::controllers
