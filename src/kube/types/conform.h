// Brings an object of a built-in kind to what Kubernetes' own types would hold of it: fields they
// do not know are taken out and reported, nulls and empty values are dropped, quantities get their
// one spelling, and a value of the wrong type is an error.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "document/json.h"
#include "kube/types/type_info.h"

namespace grapnel::kube {

// The paths of unknown fields: spec.containers[0].imagee.
Result<std::vector<std::string>> conform(const TypeInfo& type, JsonObject& object);

}  // namespace grapnel::kube
