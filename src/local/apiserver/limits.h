// Admission by the LimitRanges and ResourceQuotas of a namespace.
#pragma once

#include <string>

#include "local/apiserver/api.h"

namespace grapnel::local {

// A new pod gets the requests and limits that it does not name.
void set_limit_defaults(const Api& api, const Call& call, const std::string& ns, Json& object);

// Whether a ResourceQuota limits such objects. Usage is counted from what is stored, so these are
// created one at a time.
bool is_counted(const Api& api, const Call& call, const std::string& ns, const Json& object);

// Refuses a new object that is outside a LimitRange or beyond a ResourceQuota.
Answer<> check_limits(const Api& api, const Call& call, const std::string& ns, const Json& object);

}  // namespace grapnel::local
