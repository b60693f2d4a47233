// Reading lists in documents that others wrote.
#pragma once

#include "document/json.h"

namespace grapnel {

// The elements of a list; none when it is missing or is something else.
const JsonArray& elements(const Json* value);

}  // namespace grapnel
