// The program grapnel-shim, which this program carries inside itself.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace grapnel::local {

std::string_view shim_image();

// Writes it into `directory` under a name made of its contents, unless it is there already; its
// path. A file, not memory: shims of one version share its pages, also across restarts of grapnel.
Result<std::string> install_shim(const std::string& directory);

}  // namespace grapnel::local
