// The Node object: describes this machine.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "base/time.h"
#include "document/json.h"
#include "local/kubelet/gpus.h"

namespace grapnel::local::kubelet {

struct Machine {
  int64_t cpus = 1;
  int64_t memory_bytes = 0;
  int64_t disk_bytes = 0;
  std::string architecture = "amd64";  // in Go's words
  std::string kernel;
  std::string os_image;
  std::string machine_id;
  std::string boot_id;
};
Machine this_machine(const std::string& state_directory);

struct NodeDescription {
  std::string name;
  std::string address;
  Machine machine;
  double oversubscribe = 1;
  int64_t max_pods = 110;
  std::vector<std::string> shortcomings;
  std::string pod_network;
  std::vector<Gpu> gpus;
};

Json node_object(const NodeDescription& node);
JsonObject node_labels(const NodeDescription& node);
// Conditions of `before` keep the time of their last transition.
Json node_status(const NodeDescription& node, const Json& before, bool is_ready, Time now);
Json node_lease(const std::string& node, Time now);

}  // namespace grapnel::local::kubelet
