// The scheduler of the laptop cluster: decides which pod runs where, by what pods ask for and nodes
// have.
//
// One plan looks at the whole cluster and binds all pods that fit, the most important first, so
// that two pods never count on the same free CPU. For a pod that fits nowhere, pods of lower
// priority are deleted, as few and as unimportant as possible; the room that this makes is kept
// free for it.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/result.h"
#include "document/json_view.h"
#include "kube/meta.h"
#include "runtime/plan.h"

namespace grapnel::local {

// Amounts by resource name, in thousandths, so that "500m" is exact.
using Amounts = std::map<Interned, int64_t>;

struct SchedulerNode {
  kube::Meta meta;
  Amounts allocatable;
  bool ready = true;
  bool unschedulable = false;
  bool operator==(const SchedulerNode&) const = default;
};

struct SchedulerPod {
  kube::Meta meta;
  Interned node;  // empty: not bound
  Amounts requests;
  std::map<std::string, std::string> node_selector;
  std::vector<std::string> claims;  // PersistentVolumeClaims that it mounts
  int64_t priority = 0;
  bool preempts = true;             // others of lower priority may have to make room for it
  bool over = false;                // Succeeded or Failed: takes nothing
  bool gated = false;               // has scheduling gates
  std::string unscheduled_message;  // what its condition says now
  bool operator==(const SchedulerPod&) const = default;
};

enum class ClaimState { kUnbound, kBound, kGoing };

struct SchedulerObserved {
  std::vector<const SchedulerNode*> nodes;
  std::vector<const SchedulerPod*> pods;
  std::map<kube::Key, ClaimState> claims;  // all there are
};

Result<SchedulerNode> decode_scheduler_node(JsonView object);
Result<SchedulerPod> decode_scheduler_pod(JsonView object);

runtime::Plan plan(const SchedulerObserved& observed, Time now);

}  // namespace grapnel::local
