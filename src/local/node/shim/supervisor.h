// The shim of one pod: starts what it is told to, keeps its logs, records how it ended, and tells
// whoever is connected. It needs nobody to be connected.
#pragma once

namespace grapnel::local::shim {

// Serves `listener` until told to shut down. The current directory is the pod's.
void supervise(int listener);

}  // namespace grapnel::local::shim
