// rm -rf that stays on one file system and also removes directories without permissions.
#pragma once

namespace grapnel::local::shim {

// True when it is gone, also when it was not there.
bool remove_tree(int parent, const char* name);

}  // namespace grapnel::local::shim
