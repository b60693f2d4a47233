// Admission by the LimitRanges and ResourceQuotas of a namespace.
#pragma once

#include <string>

#include "local/apiserver/api.h"

namespace grapnel::local {

// A new pod gets the requests and limits that it does not name.
void set_limit_defaults(const Api& api, const Call& call, const std::string& ns, Json& object);

// Refuses a new object that is outside a LimitRange or beyond a ResourceQuota. Usage is counted
// from what is stored: two creates that are under way together are not seen by each other.
Answer<> check_limits(const Api& api, const Call& call, const std::string& ns, const Json& object);

}  // namespace grapnel::local
