// Finds the pods of the kubelet, for code that serves users.
#pragma once

#include <memory>
#include <string>
#include <string_view>

namespace grapnel::local::kubelet {

class PodWorker;

class PodDirectory {
 public:
  virtual ~PodDirectory() = default;
  // nullptr: this node has no such pod.
  virtual std::shared_ptr<PodWorker> find_pod(std::string_view ns, std::string_view name) = 0;
};

}  // namespace grapnel::local::kubelet
