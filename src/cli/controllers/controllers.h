// Where planners meet caches: each function adds a controller to a Manager, with the informers that
// fill what its planner observes.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "runtime/manager.h"

namespace grapnel::cli {

// What all our controllers watch; one informer for each kind, shared.
struct ControllerOptions {
  std::string ns;  // "": all namespaces
  bool jobset = true;
  bool experiment = true;
  // On the laptop: where experiments have their folders. "": they have none.
  std::string folders = {};
  // JobSets as the original controller treats them, wherever ours differs on purpose.
  bool strict = false;
};

void add_controllers(runtime::Manager& manager, const ControllerOptions& options);

// What a controller does to a kind. The RBAC roles we install are made of these alone.
struct Permission {
  kube::Kind kind;
  std::string_view subresource = "";
  std::vector<std::string_view> verbs;
};

// What their plans write. What they watch, the manager's informers know.
std::vector<Permission> writes_of(const ControllerOptions& options);

}  // namespace grapnel::cli
