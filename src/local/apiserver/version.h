// The version of Kubernetes whose API this server speaks: clients compare it with their own.
#pragma once

#include <string>

namespace grapnel::local {

std::string version_text();  // what /version answers

}  // namespace grapnel::local
