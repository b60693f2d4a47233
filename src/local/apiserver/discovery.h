// Tells clients what the server serves: groups, versions, resources, in the old form and in the
// aggregated one.
#pragma once

#include <optional>
#include <string>

#include "local/apiserver/api.h"

namespace grapnel::local {

// /api, /apis and below; nothing when the path is none of them.
std::optional<Answer<Reply>> answer_discovery(const Api& api, const Call& call);

}  // namespace grapnel::local
