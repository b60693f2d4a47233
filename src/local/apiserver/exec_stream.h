// exec and attach over WebSocket, in the channels of v5.channel.k8s.io and v4.channel.k8s.io: the
// first byte of each message says which stream it belongs to.
#pragma once

#include "http/server.h"
#include "local/apiserver/api.h"

namespace grapnel::local {

Task<> serve_exec(Api& api, const Call& call, http::Exchange& exchange);

// The Status by which the client learns how the command ended.
Json exit_status(const Result<PodExit>& ended);

}  // namespace grapnel::local
