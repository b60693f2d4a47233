// A kubeconfig's text with another current context and not a letter changed beside that: comments
// and order are its owner's.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace grapnel::cli {

Result<std::string> with_current_context(std::string_view text, std::string_view name);

}  // namespace grapnel::cli
