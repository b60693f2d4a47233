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

// The volume that all pods share, where one is asked for: the JobSet makes it.
inline constexpr std::string_view kSharedVolume = "shared";
inline constexpr int kTensorBoardPort = 6006;
inline constexpr int kJupyterPort = 8888;

// Where an experiment's inputs/, outputs/ and tensorboard/ are; "" when there is no place for them.
std::string folder_of(const api::Experiment& experiment, std::string_view folders);

struct PodOptions {
  std::string_view component;
  const api::Resources& resources;
  JsonArray distribution;          // the part of the environment that tells the process its role
  JsonObject labels = {};          // beside those that every process has
  std::string_view wait_for = {};  // see wait_for_address.h; "": nothing
  std::string_view folder;         // of the experiment; "": it has none
};
// Requests and limits, as a container has them.
Json resources_of(const api::Resources& resources);
Json pod_template(const api::Experiment& experiment, PodOptions options);

std::string tensorboard_name(const api::Experiment& experiment);
Json tensorboard_pod(const api::Experiment& experiment, std::string_view folder);

}  // namespace grapnel::experiment
