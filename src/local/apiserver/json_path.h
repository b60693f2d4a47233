// The simple JSONPath of printer columns: .spec.replicas,
// .status.conditions[?(@.type=="Ready")].status, .items[0], .items[*].name,
// .metadata.labels['a.b/c'].
#pragma once

#include <string_view>
#include <vector>

#include "document/json.h"

namespace grapnel::local {

// All values the path leads to; none when it leads nowhere or is not understood.
std::vector<const Json*> find_by_path(const Json& root, std::string_view path);

}  // namespace grapnel::local
