// What `kubectl get pods` shows of a pod.
#pragma once

#include <string>
#include <string_view>

#include "base/time.h"
#include "document/json.h"

namespace grapnel::local {

JsonArray pod_cells(const Json& pod, Time now);
// "5m", "<unknown>" where there is no time.
std::string since(std::string_view time, Time now);

}  // namespace grapnel::local
