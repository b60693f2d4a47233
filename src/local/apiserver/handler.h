// The entry of the server: one request in, its answer out.
#pragma once

#include "http/server.h"
#include "local/apiserver/api.h"

namespace grapnel::local {

Task<> handle(Api& api, http::Exchange& exchange);

}  // namespace grapnel::local
