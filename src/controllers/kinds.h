// One function for each of our kinds, each in a file of its own. For table.cpp alone: everybody
// else goes by table.h.
#pragma once

#include "controllers/our_kind.h"

namespace grapnel::controllers {

OurKind experiment_kind();
OurKind jobset_kind();

}  // namespace grapnel::controllers
