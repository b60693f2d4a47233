// Which process of its experiment a pod is. Everything that shows or picks processes asks here and
// reads no label itself.
//
// A pod of an experiment carries four labels: experiment, component, replica (its number within the
// component) and rank (its number within the experiment). Pods of Indexed Jobs are made by
// Kubernetes from one template, so theirs cannot have the last two: they are counted from the
// indexes that Job controller and JobSet write.
#pragma once

#include <string>
#include <string_view>

#include "api/pod.h"

namespace grapnel::experiment {

inline constexpr std::string_view kExperimentLabel = "grapnel.dev/experiment";
inline constexpr std::string_view kComponentLabel = "grapnel.dev/component";
inline constexpr std::string_view kReplicaLabel = "grapnel.dev/replica";
inline constexpr std::string_view kRankLabel = "grapnel.dev/rank";
// Of a template: the rank of the component's first process, and how many pods each Job has.
inline constexpr std::string_view kFirstRankLabel = "grapnel.dev/first-rank";
inline constexpr std::string_view kJobSizeLabel = "grapnel.dev/job-size";
// Marks a pod beside the experiment's own, which does not count for how it ends.
inline constexpr std::string_view kCompanionLabel = "grapnel.dev/companion";

struct ProcessId {
  std::string experiment;
  std::string component;
  int64_t replica = 0;
  int64_t rank = 0;
  bool is_companion = false;
  std::string number;  // "0"; "1-0" where the experiment has several Jobs: that of Job and pod
  std::string name;    // worker-0, worker-1-0; a companion has its component's
};
ProcessId process_id(const kube::Meta& pod);

// What a cache of Pods must keep for all this.
Result<api::Pod> decode_process(JsonView object);

}  // namespace grapnel::experiment
