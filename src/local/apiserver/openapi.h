// OpenAPI documents, as small as kubectl allows: it looks only for kinds and the parameters of
// their PATCH.
#pragma once

#include <optional>

#include "local/apiserver/api.h"

namespace grapnel::local {

// /openapi/v2, /openapi/v3 and below; nothing when the path is none of them.
std::optional<Answer<Reply>> answer_openapi(const Api& api, const Call& call);

}  // namespace grapnel::local
