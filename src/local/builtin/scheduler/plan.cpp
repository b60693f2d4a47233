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

  void take(const SchedulerPod& pod) {
    --pods_left;
    for (const auto& [name, amount] : pod.requests) free[name] -= amount;
  }
  void give_back(const SchedulerPod& pod) {
    ++pods_left;
    for (const auto& [name, amount] : pod.requests) free[name] += amount;
  }
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
    candidates[found->second].take(*pod);
  }
  return candidates;
}

// Why the pod could not run there even if it were empty; all reasons are in the words of
// Kubernetes' own scheduler.
std::string aversion(const SchedulerPod& pod, const SchedulerNode& node) {
  if (node.unschedulable) return "node(s) were unschedulable";
  if (!node.ready) return "node(s) had untolerated taint {node.kubernetes.io/not-ready: }";
  for (const auto& [key, value] : pod.node_selector) {
    if (node.meta.labels.get(key) != value) {
      return "node(s) didn't match Pod's node affinity/selector";
    }
  }
  return "";
}

// The resources of which there is too little for it.
std::vector<std::string> shortages(const SchedulerPod& pod, const Candidate& candidate) {
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

std::vector<std::string> obstacles(const SchedulerPod& pod, const Candidate& candidate) {
  if (auto reason = aversion(pod, *candidate.node); !reason.empty()) return {std::move(reason)};
  return shortages(pod, candidate);
}

// The pods of lower priority that would have to be deleted for this one. Nothing: even that would
// not be enough. Empty: it only has to wait for pods that are being deleted already.
std::optional<std::vector<const SchedulerPod*>> victims(const SchedulerPod& pod,
                                                        Candidate candidate,
                                                        const SchedulerObserved& o) {
  if (!aversion(pod, *candidate.node).empty()) return std::nullopt;
  std::vector<const SchedulerPod*> lower;
  for (const auto* other : o.pods) {
    if (other->over || other->node.view() != candidate.node->meta.name()) continue;
    if (other->meta.is_being_deleted()) {
      candidate.give_back(*other);
    } else if (other->priority < pod.priority) {
      lower.push_back(other);
    }
  }
  // The least important first, of equals the youngest.
  std::ranges::sort(lower, [](const SchedulerPod* a, const SchedulerPod* b) {
    if (a->priority != b->priority) return a->priority < b->priority;
    if (a->meta.created != b->meta.created) return a->meta.created > b->meta.created;
    return b->meta.key < a->meta.key;
  });
  std::vector<const SchedulerPod*> chosen;
  for (const auto* other : lower) {
    if (shortages(pod, candidate).empty()) break;
    candidate.give_back(*other);
    chosen.push_back(other);
  }
  if (!shortages(pod, candidate).empty()) return std::nullopt;
  // Keep those, the most important first, that need not be deleted.
  for (size_t i = chosen.size(); i-- > 0;) {
    candidate.take(*chosen[i]);
    if (shortages(pod, candidate).empty()) {
      chosen.erase(chosen.begin() + static_cast<std::ptrdiff_t>(i));
    } else {
      candidate.give_back(*chosen[i]);
    }
  }
  return chosen;
}

Plan preempt(const SchedulerPod& victim, const SchedulerPod& by, Time now) {
  Plan plan;
  plan.add(runtime::Patch{
      .target = ref(victim),
      .type = runtime::Patch::Type::kStrategic,
      .body = JsonObject{{"status",
                          JsonObject{
                              {"conditions",
                               JsonArray{JsonObject{
                                   {"type", "DisruptionTarget"},
                                   {"status", "True"},
                                   {"reason", "PreemptionByScheduler"},
                                   {"message", "preempting to accommodate a higher priority pod"},
                                   {"lastTransitionTime", format_time(now)}}}}}}},
      .subresource = "status"});
  plan.then();
  plan.add(runtime::Delete{ref(victim)});
  plan.emit(ref(victim), Event::Type::kNormal, "Preempted",
            fmt::format("Preempted by pod {} on node {}", by.meta.uid.text(), victim.node.view()),
            "Preempting");
  return plan;
}

// Makes room for a pod where the fewest have to be deleted for it, and keeps that room free.
Plan make_room(const SchedulerPod& pod, std::vector<Candidate>& candidates,
               const SchedulerObserved& o, Time now) {
  Plan plan;
  if (!pod.preempts) return plan;
  Candidate* best = nullptr;
  std::vector<const SchedulerPod*> fewest;
  for (auto& candidate : candidates) {
    auto found = victims(pod, candidate, o);
    if (!found || (best != nullptr && found->size() >= fewest.size())) continue;
    best = &candidate;
    fewest = std::move(*found);
  }
  if (best == nullptr) return plan;
  for (const auto* victim : fewest) plan.add(preempt(*victim, pod, now));
  best->take(pod);
  return plan;
}

// Why its claims exclude every node; empty: they do not.
std::string claim_obstacle(const SchedulerPod& pod, const SchedulerObserved& o) {
  for (const auto& name : pod.claims) {
    const auto found = o.claims.find({pod.meta.key.ns, name});
    if (found == o.claims.end()) return fmt::format("persistentvolumeclaim \"{}\" not found", name);
    if (found->second == ClaimState::kGoing) {
      return fmt::format("persistentvolumeclaim \"{}\" is being deleted", name);
    }
    if (found->second == ClaimState::kUnbound) {
      return "pod has unbound immediate PersistentVolumeClaims";
    }
  }
  return "";
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
  candidate.take(pod);
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
    if (const auto why = claim_obstacle(*pod, o); !why.empty()) {
      refuse(plan, *pod, fmt::format("0/{} nodes are available: {}.", o.nodes.size(), why), now);
      continue;
    }
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
      plan.add(make_room(*pod, candidates, o, now));
    }
  }
  return plan;
}

}  // namespace grapnel::local
