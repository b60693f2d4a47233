// Server-side apply: a manager says what it wants; the server knows what it wanted before.
#pragma once

#include "local/apiserver/api.h"

namespace grapnel::local {

Task<Answer<Reply>> apply_object(Api& api, Call& call);

}  // namespace grapnel::local
