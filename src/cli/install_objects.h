// What a cluster needs to run the operator, as plain objects. The roles are made from what the
// controllers declare: what they watch, and what they write.
#pragma once

#include <string_view>
#include <utility>
#include <vector>

#include "cli/options.h"
#include "document/json.h"
#include "kube/kind.h"

namespace grapnel::cli {

struct InstallObject {
  kube::Kind kind;
  Json object;
  std::string_view left_out_by = {};  // the option for a cluster that does not know its kind
};

// In the order in which they are to be applied.
std::vector<InstallObject> install_objects(const InstallOptions& options);

}  // namespace grapnel::cli
