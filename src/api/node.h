// A Node as planners read it: where it stands, and whether it can be reached.
#pragma once

#include "base/result.h"
#include "document/json_view.h"
#include "kube/meta.h"

namespace grapnel::api {

struct Node {
  kube::Meta meta;
  bool ready = false;
  bool unschedulable = false;
  bool operator==(const Node&) const = default;
};

Result<Node> decode_node(JsonView object, const kube::MetaOptions& kept = {.all_labels = true});

}  // namespace grapnel::api
