// A container's environment, and `$(VAR)` in its command. Pure.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "local/kubelet/pod.h"
#include "local/kubelet/sources.h"

namespace grapnel::local::kubelet {

// What the node provides to its pods.
struct NodeFacts {
  std::string name;
  std::string address;                   // hostIP
  std::string work_directory = "/";      // where containers start that name no directory
  std::vector<std::string> environment;  // NAME=value: the image's, since the host is the image
  int64_t cpu_millis = 0;                // for limits that are asked for and not set
  int64_t memory_bytes = 0;
  bool can_change_user = true;  // runAsUser can be obeyed
  // Of the API server that pods can reach. "": there is none, and pods get no token.
  std::string api_authority_pem = {};
};

using Variables = std::vector<std::pair<std::string, std::string>>;

// Replaces $(NAME) by its value and $$ by $; leaves unknown names as they are.
std::string expand(
    std::string_view text,
    const std::function<std::optional<std::string>(std::string_view name)>& value_of);

struct EnvironmentInput {
  const Pod* pod = nullptr;
  Container container;
  const Sources* sources = nullptr;
  const NodeFacts* node = nullptr;
  std::string pod_address;
  Variables services;  // KUBERNETES_SERVICE_HOST and its kind
};

struct ContainerEnvironment {
  Variables all;    // each name once
  Variables known;  // without what the node lends: what $(VAR) sees

  std::optional<std::string> get_known(std::string_view name) const;
};

// What the spec sets, on top of what the node provides. The Error names what is missing, in
// Kubernetes' words.
Result<ContainerEnvironment> environment_of(const EnvironmentInput& input);

// The part of a user's own environment that pods should see: they find programs and libraries as
// the user does, but get no secrets and nothing of the desktop.
std::vector<std::string> inherited_environment(const std::vector<std::string>& environment);

// metadata.name, metadata.labels['k'], spec.nodeName, status.podIP …; for volumes also whole
// metadata.labels and metadata.annotations. Nothing: no such field.
std::optional<std::string> field_of_pod(const Pod& pod, std::string_view path,
                                        const NodeFacts& node, std::string_view pod_address);
// limits.cpu, requests.memory … in units of `divisor`.
std::optional<std::string> resource_of_container(const Container& container,
                                                 std::string_view resource,
                                                 std::string_view divisor, const NodeFacts& node);

}  // namespace grapnel::local::kubelet
