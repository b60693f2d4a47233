// The priority of a new pod, from the class it names.
#pragma once

#include "local/apiserver/api.h"

namespace grapnel::local {

Answer<> set_priority(const Api& api, JsonObject& pod);

}  // namespace grapnel::local
