#include "local/builtin/scheduler/plan.h"

#include <absl/container/flat_hash_map.h>

#include <algorithm>

namespace grapnel::local {
namespace {

using runtime::Event;
using runtime::ObjectRef;
using runtime::Plan;

constexpr kube::Kind kBinding{"", "v1", "Binding", "bindings"};

ObjectRef ref(const SchedulerPod& pod) {
  return {&kube::kinds::kPod, pod.meta.key, pod.meta.uid};
}

bool waits(const SchedulerPod& pod) {
  return pod.node.empty() && !pod.over && !pod.gated && !pod.meta.is_being_deleted();
}

// A node and what is left of it.
struct Candidate {
  const SchedulerNode* node = nullptr;
  Amounts free;
  int64_t pods_left = 0;
};

std::vector<Candidate> candidates_of(const SchedulerObserved& o) {
  static const Interned kPods("pods");
  absl::flat_hash_map<std::string, size_t> by_name;
  std::vector<Candidate> candidates;
  for (const auto* node : o.nodes) {
    by_name[node->meta.name()] = candidates.size();
    const auto pods = node->allocatable.find(kPods);
    // A node that says nothing about the number of pods takes any.
    const int64_t most = pods == node->allocatable.end() ? INT64_MAX : pods->second / 1000;
    candidates.push_back({node, node->allocatable, most});
  }
  for (const auto* pod : o.pods) {
    if (pod->node.empty() || pod->over) continue;
    const auto found = by_name.find(pod->node.str());
    if (found == by_name.end()) continue;
    auto& candidate = candidates[found->second];
    --candidate.pods_left;
    for (const auto& [name, amount] : pod->requests) candidate.free[name] -= amount;
  }
  return candidates;
}

// Why the pod cannot run there, each in the words of Kubernetes' own scheduler; empty: it can.
std::vector<std::string> obstacles(const SchedulerPod& pod, const Candidate& candidate) {
  if (candidate.node->unschedulable) return {"node(s) were unschedulable"};
  if (!candidate.node->ready)
    return {"node(s) had untolerated taint {node.kubernetes.io/not-ready: }"};
  for (const auto& [key, value] : pod.node_selector) {
    if (candidate.node->meta.labels.get(key) != value) {
      return {"node(s) didn't match Pod's node affinity/selector"};
    }
  }
  std::vector<std::string> reasons;
  if (candidate.pods_left <= 0) reasons.emplace_back("Too many pods");
  for (const auto& [name, amount] : pod.requests) {
    const auto free = candidate.free.find(name);
    if (amount > 0 && (free == candidate.free.end() || free->second < amount)) {
      reasons.push_back(fmt::format("Insufficient {}", name.view()));
    }
  }
  return reasons;
}

std::string refusal(size_t nodes, const std::map<std::string, int>& reasons) {
  if (nodes == 0) return "no nodes available to schedule pods";
  std::string text = fmt::format("0/{} nodes are available: ", nodes);
  bool first = true;
  for (const auto& [reason, count] : reasons) {
    text += fmt::format("{}{} {}", first ? "" : ", ", count, reason);
    first = false;
  }
  return text + ".";
}

void bind(Plan& plan, const SchedulerPod& pod, Candidate& candidate) {
  --candidate.pods_left;
  for (const auto& [name, amount] : pod.requests) candidate.free[name] -= amount;
  plan.add(runtime::Create{
      &kBinding, JsonObject{{"apiVersion", "v1"},
                            {"kind", "Binding"},
                            {"metadata", JsonObject{{"name", pod.meta.name()},
                                                    {"namespace", pod.meta.ns()},
                                                    {"uid", pod.meta.uid.text()}}},
                            {"target", JsonObject{{"apiVersion", "v1"},
                                                  {"kind", "Node"},
                                                  {"name", candidate.node->meta.name()}}}}});
  plan.emit(ref(pod), Event::Type::kNormal, "Scheduled",
            fmt::format("Successfully assigned {} to {}", pod.meta.key.text(),
                        candidate.node->meta.name()),
            "Binding");
}

void refuse(Plan& plan, const SchedulerPod& pod, const std::string& message, Time now) {
  if (pod.unscheduled_message == message) return;
  plan.add(runtime::Patch{
      .target = ref(pod),
      .type = runtime::Patch::Type::kStrategic,
      .body = JsonObject{{"status", JsonObject{{"conditions",
                                                JsonArray{JsonObject{
                                                    {"type", "PodScheduled"},
                                                    {"status", "False"},
                                                    {"reason", "Unschedulable"},
                                                    {"message", message},
                                                    {"lastTransitionTime", format_time(now)}}}}}}},
      .subresource = "status"});
  plan.emit(ref(pod), Event::Type::kWarning, "FailedScheduling", message, "Scheduling");
}

}  // namespace

Plan plan(const SchedulerObserved& o, Time now) {
  std::vector<const SchedulerPod*> waiting;
  std::ranges::copy_if(o.pods, std::back_inserter(waiting), [](auto* pod) { return waits(*pod); });
  // The most important first, then the oldest; the name settles what is left.
  std::ranges::sort(waiting, [](const SchedulerPod* a, const SchedulerPod* b) {
    if (a->priority != b->priority) return a->priority > b->priority;
    if (a->meta.created != b->meta.created) return a->meta.created < b->meta.created;
    return a->meta.key < b->meta.key;
  });

  Plan plan;
  auto candidates = candidates_of(o);
  for (const auto* pod : waiting) {
    std::map<std::string, int> reasons;
    Candidate* chosen = nullptr;
    for (auto& candidate : candidates) {
      const auto why_not = obstacles(*pod, candidate);
      for (const auto& reason : why_not) ++reasons[reason];
      if (why_not.empty() && (chosen == nullptr || candidate.pods_left > chosen->pods_left)) {
        chosen = &candidate;
      }
    }
    if (chosen != nullptr) {
      bind(plan, *pod, *chosen);
    } else {
      refuse(plan, *pod, refusal(o.nodes.size(), reasons), now);
    }
  }
  return plan;
}

}  // namespace grapnel::local
