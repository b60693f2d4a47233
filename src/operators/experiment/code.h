// Code that comes with an experiment instead of with its image: an archive in a ConfigMap, which
// each pod unpacks before its process starts there.
#pragma once

#include <string_view>

#include "document/json.h"

namespace grapnel::experiment {

// On an Experiment: the ConfigMap.
inline constexpr std::string_view kCodeAnnotation = "grapnel.dev/code";
// In it: a .tar.gz.
inline constexpr std::string_view kCodeFile = "code.tar.gz";
inline constexpr std::string_view kCodeDirectory = "/mnt/code";

// Adds it to the spec of a pod with one container.
void add_code(JsonObject& pod, std::string_view config_map);

}  // namespace grapnel::experiment
