// Puts a container's root together, one mount after the other as planned by grapnel (mount_plan.h),
// and makes it the root. Runs in the container's own mount namespace.
#pragma once

#include <string_view>

namespace grapnel::local::shim {

// Carries out one kMount. `root` is the directory that will become the root.
bool apply_mount(const char* root, std::string_view fields);
bool enter_root(const char* root);
// mkdir -p below `root`, where symbolic links stay inside; an O_PATH fd of the last, or -1.
int make_directories(int root, const char* path, unsigned mode);

}  // namespace grapnel::local::shim
