// A Pod as planners read it: about half a kilobyte, where the whole is 14.
#pragma once

#include <absl/container/inlined_vector.h>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "document/json_view.h"
#include "kube/meta.h"

namespace grapnel::api {

struct ContainerStatus {
  enum class State : uint8_t { kWaiting, kRunning, kTerminated };
  Interned name;
  State state = State::kWaiting;
  bool is_init = false;
  bool ready = false;
  int32_t restarts = 0;
  int32_t exit_code = 0;  // when terminated
  Interned reason;        // of waiting or of termination: CrashLoopBackOff, OOMKilled …
  std::string message;
  bool operator==(const ContainerStatus&) const = default;
};

// Only those that say something is not as it should be.
struct PodCondition {
  Interned type;
  bool is_true = false;
  Interned reason;
  std::string message;
  Time last_transition_time{};
  bool operator==(const PodCondition&) const = default;
};

struct Pod {
  enum class Phase : uint8_t { kPending, kRunning, kSucceeded, kFailed, kUnknown };

  kube::Meta meta;
  Interned node;  // empty: not scheduled
  Phase phase = Phase::kPending;
  bool ready = false;
  bool restarts_never = false;             // restartPolicy: Never
  absl::InlinedVector<Interned, 1> gates;  // that keep it from being scheduled
  std::string ip;
  Interned reason;  // Evicted, NodeLost …
  kube::StringMap node_selector;
  absl::InlinedVector<ContainerStatus, 1> containers;
  std::vector<PodCondition> conditions;

  bool is_finished() const { return phase == Phase::kSucceeded || phase == Phase::kFailed; }
  const ContainerStatus* container(std::string_view name) const;  // nullptr: none
  const PodCondition* condition(std::string_view type) const;
  bool operator==(const Pod&) const = default;
};

std::string_view to_string(Pod::Phase phase);

// Give the labels that planners read: a Pod has many, and some of them hold uids.
Result<Pod> decode_pod(JsonView object, const kube::MetaOptions& kept);

}  // namespace grapnel::api
