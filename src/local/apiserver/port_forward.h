// kubectl port-forward: SPDY inside a WebSocket. Each connection of the client is two streams, one
// for its bytes and one for the error that ended it.
#pragma once

#include "http/server.h"
#include "local/apiserver/api.h"

namespace grapnel::local {

Task<> serve_port_forward(Api& api, const Call& call, http::Exchange& exchange);

}  // namespace grapnel::local
