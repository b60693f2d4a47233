// Writes answers: JSON with its headers.
#pragma once

#include <string_view>

#include "http/server.h"
#include "local/apiserver/status.h"

namespace grapnel::local {

void add_warning(http::Response& response, std::string_view text);
Task<> respond_error(http::Exchange& exchange, ApiError error);

}  // namespace grapnel::local
