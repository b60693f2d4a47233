// How large a Json is: what copying it costs, and how deep it nests. Used to limit documents that
// others make us build.
#pragma once

#include <cstddef>

#include "document/json.h"

namespace grapnel {

struct JsonExtent {
  size_t bytes = 0;   // roughly, in memory
  size_t height = 0;  // 0 for a scalar, 1 for [] or {}
};
JsonExtent extent_of(const Json& value);

}  // namespace grapnel
