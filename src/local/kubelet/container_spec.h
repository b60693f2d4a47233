// Turns a container of a Pod into what the node is to run. Pure.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "local/kubelet/environment.h"
#include "local/kubelet/pod.h"
#include "local/kubelet/volumes.h"
#include "local/node/pod_spec.h"

namespace grapnel::local::kubelet {

struct ContainerInput {
  const Pod* pod = nullptr;
  Container container;
  uint64_t attempt = 0;
  const Sources* sources = nullptr;
  const NodeFacts* node = nullptr;
  const std::vector<Volume>* volumes = nullptr;
  std::string pod_address;
  Variables services;
  std::string log_path;
  std::string termination_log;  // a file of the host, shown at terminationMessagePath; "": none
};

struct ContainerToRun {
  ContainerSpec spec;
  std::vector<std::string> directories;  // to be made before
  size_t gpus = 0;                       // it asks for
};

Result<ContainerToRun> container_to_run(const ContainerInput& input);
PodSpec pod_to_run(const Pod& pod, const NodeFacts& node);

// Where a pod's logs are, a container's, and those of one attempt: they may outlive the pod.
std::string log_directory_of_pod(const std::string& state_directory, const Pod& pod);
std::string log_directory(const std::string& state_directory, const Pod& pod,
                          std::string_view container);
std::string log_path(const std::string& directory, uint64_t attempt);

// Bits of Linux' capabilities by Kubernetes' names ("NET_ADMIN"); nothing when unknown.
std::optional<uint64_t> capability_mask(std::string_view name);

}  // namespace grapnel::local::kubelet
