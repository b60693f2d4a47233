// The pod of one component: its container, resources, /dev/shm, volumes and placement.
#pragma once

#include <string_view>

#include "api/experiment.h"

namespace grapnel::experiment {

// Where processes start, on the laptop: the directory in which the user called `grapnel run`.
inline constexpr std::string_view kWorkDirectoryAnnotation = "grapnel.dev/work-directory";
// And what finds programs and libraries there (PATH, VIRTUAL_ENV …), as a JSON object of strings.
inline constexpr std::string_view kEnvironmentAnnotation = "grapnel.dev/environment";

// An environment variable with a text, or taken from the pod's own metadata.
Json env_value(std::string_view name, std::string_view value);
Json env_field(std::string_view name, std::string_view field_path);

// `distribution` is the part of the environment that tells the process its role.
Json pod_template(const api::Experiment& experiment, std::string_view component,
                  const api::Resources& resources, JsonArray distribution);

}  // namespace grapnel::experiment
