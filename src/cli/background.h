// A laptop cluster that outlives the command which started it.
#pragma once

#include "base/result.h"
#include "cli/options.h"
#include "cli/paths.h"

namespace grapnel::cli {

// Starts `grapnel up` in a session of its own and returns its pid once it says that it serves. What
// it warned of meanwhile goes to standard error. An Error says why it failed; when it ended without
// a word, it carries the end of its log.
Result<int> start_in_background(const ClusterPaths& paths, const ClusterOptions& options);

}  // namespace grapnel::cli
