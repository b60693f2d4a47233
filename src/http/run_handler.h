// Runs a handler, for a connection or for a direct transport. Inside http/ only.
#pragma once

#include "http/server.h"

namespace grapnel::http {

// Returns when the handler has, or has failed: then that is in the log. Only a cancellation goes
// on.
Task<> run_handler(const Handler& handler, Exchange& exchange);

}  // namespace grapnel::http
