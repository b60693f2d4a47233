// A LimitRange: defaults for containers that do not set limits, and what is too little or too much.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "document/json.h"

namespace grapnel::local {

// Gives the containers of a pod the requests and limits that they do not name.
void set_limit_defaults(Json& pod, const Json& limit_range);

// What is wrong with a pod or a claim, each in Kubernetes' words.
std::vector<std::string> limit_violations(const Json& object, std::string_view plural,
                                          const Json& limit_range);

}  // namespace grapnel::local
