// Where planners meet caches: each function adds a controller to a Manager, with the informers that
// fill what its planner observes.
#pragma once

#include <string>

#include "runtime/manager.h"

namespace grapnel::cli {

// What all our controllers watch; one informer for each kind, shared.
struct ControllerOptions {
  std::string ns;  // "": all namespaces
  bool jobset = true;
  bool experiment = true;
};

void add_controllers(runtime::Manager& manager, const ControllerOptions& options);

}  // namespace grapnel::cli
