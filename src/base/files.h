// Reading small files whole.
#pragma once

#include <string>

#include "base/result.h"

namespace grapnel {

// The Error says why ("no such file or directory"), not which: the caller knows what the file is
// to it. A missing file is NotFound.
Result<std::string> read_file(const std::string& path, size_t limit = 16UL << 20);

}  // namespace grapnel
