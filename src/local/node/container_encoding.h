// Encodes what to run for the shim, and decodes what the shim reports of containers.
#pragma once

#include <string>
#include <string_view>

#include "local/node/cgroup.h"
#include "local/node/mount_plan.h"
#include "local/node/pod_spec.h"

namespace grapnel::local {

struct ContainerSurroundings {
  Isolation isolation = Isolation::kRoot;
  bool share_processes = false;
  RootPlan root;  // without namespaces: none
  ContainerCgroup cgroup;
};

std::string encode_container(const ContainerSpec& container, const ContainerSurroundings& around);
std::string encode_exec(const ExecSpec& exec, const ContainerCgroup& cgroup, Isolation isolation);
// From the fields of kContainer, kStarted, kStartFailed, kExited.
ContainerStatus decode_status(std::string_view fields);

}  // namespace grapnel::local
