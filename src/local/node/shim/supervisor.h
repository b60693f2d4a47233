// The shim of one pod: starts what it is told to, writes its logs, records how it ended, and tells
// whoever is connected. It also works when nobody is connected.
#pragma once

namespace grapnel::local::shim {

// Serves `listener` until told to shut down. The current directory is the pod's.
void supervise(int listener);

}  // namespace grapnel::local::shim
