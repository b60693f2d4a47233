// Logs of pods that are gone. Each pod has a folder for its logs. When the pod is gone, the folder
// is deleted, too, unless somebody still wants it; then a file in it says which pod it belonged to.
#pragma once

#include <functional>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "document/json.h"
#include "local/kubelet/pod.h"

namespace grapnel::local::kubelet {

class KeptLogs {
 public:
  // Asked of a Pod that is gone: its metadata, status.phase and the names of its containers.
  using Wanted = std::function<bool(const Json& pod)>;

  KeptLogs(std::string state_directory, Wanted wanted)
      : state_directory_(std::move(state_directory)), wanted_(std::move(wanted)) {}

  // The pod is gone.
  void take(const Pod& pod) const;
  // Asks again for each log, and removes those of pods whose end nobody saw: all that are neither
  // kept nor of these uids.
  void sweep(const std::set<std::string>& living) const;

  std::vector<Json> all() const;
  // The log of a kept pod's container, or of its only one. An Error when there is none.
  Result<std::string> log_file(std::string_view ns, std::string_view pod,
                               std::string_view container, bool previous) const;

 private:
  std::string folder() const { return state_directory_ + "/pods"; }

  std::string state_directory_;
  Wanted wanted_;
};

}  // namespace grapnel::local::kubelet
