// Makes a pod's namespaces and leaves the shim in them.
#pragma once

#include <string_view>

namespace grapnel::local::shim {

// `grapnel-shim pod`: reports over a pipe "ok <pid>" or why not. The exit code.
int launch_pod(std::string_view config);
// `grapnel-shim anchor`: the same for the process that holds the cluster's network.
int launch_anchor(std::string_view config);
// `grapnel-shim sweep`: removes a directory and all in it, whatever a pod did to its permissions.
int sweep(std::string_view config);

}  // namespace grapnel::local::shim
