// A watch: the changes of a collection as they happen, one line each.
#pragma once

#include "http/server.h"
#include "local/apiserver/api.h"

namespace grapnel::local {

// Answers through the exchange; returns when the client left, its time is up, or it fell behind.
Task<> serve_watch(Api& api, Call& call, http::Exchange& exchange);

}  // namespace grapnel::local
