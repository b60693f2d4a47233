// How much of a quota one object uses.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "base/quantity.h"
#include "document/json.h"

namespace grapnel::local {

using Usage = std::map<std::string, Quantity>;

// The sum of its containers' requests or limits ("requests", "limits"); init containers run before
// the others, so the largest of them counts where it is larger.
Usage pod_resources(const Json& pod_spec, std::string_view which);

// By the names that a quota uses: "pods", "requests.cpu", "count/jobs.batch". `plural` and `group`
// say what the object is. A pod that has ended uses only its count/pods.
Usage usage_of(const Json& object, std::string_view group, std::string_view plural);

void add(Usage& sum, const Usage& more);

// "cpu=1,pods=2": only the names that `names` has.
std::string text_of(const Usage& usage, const Usage& names);

}  // namespace grapnel::local
