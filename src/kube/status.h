// Refusals of the API server as Errors: made from a Status if there is one, otherwise from whatever
// a proxy in between may say.
#pragma once

#include "base/error.h"
#include "document/json.h"
#include "http/message.h"

namespace grapnel::kube {

// The Error for a Status. With a code of 0, the Status' own code counts.
Error error_of_status(int code, const Json& status);

// The Error of an answer whose code is not 2xx. `asked` says what was asked for ("GET /version").
Error error_of_answer(const http::Response& answer, std::string_view asked);

}  // namespace grapnel::kube
