#include <fmt/format.h>

#include <algorithm>
#include <tuple>

#include "document/selector.h"
#include "local/builtin/naming.h"
#include "local/builtin/workload/plan.h"

namespace grapnel::local {
namespace {

using runtime::Event;
using runtime::ObjectRef;
using runtime::Plan;

// One plan asks for no more than this; the next one continues.
constexpr size_t kMostAtOnce = 500;

ObjectRef ref(const ReplicaSet& set) {
  return {&kube::kinds::kReplicaSet, set.meta.key, set.meta.uid};
}
ObjectRef ref(const WorkloadPod& pod) {
  return {&kube::kinds::kPod, pod.meta.key, pod.meta.uid};
}

JsonObject owner_of(const ReplicaSet& set) {
  return {{"apiVersion", "apps/v1"},    {"kind", "ReplicaSet"}, {"name", set.meta.name()},
          {"uid", set.meta.uid.text()}, {"controller", true},   {"blockOwnerDeletion", true}};
}

bool selects(const Selector& selector, const WorkloadPod& pod) {
  return selector.matches([&](std::string_view key) -> std::optional<std::string_view> {
    if (!pod.meta.labels.has(key)) return std::nullopt;
    return pod.meta.labels.get(key);
  });
}

Json pod_of(const ReplicaSet& set, const std::string& name) {
  Json pod = set.pod_template;
  if (!pod.is_object()) pod = JsonObject();
  auto& root = pod.as_object();
  root["apiVersion"] = "v1";
  root["kind"] = "Pod";
  auto& metadata = ensure_object(root, "metadata");
  metadata["name"] = name;
  metadata["generateName"] = set.meta.name() + "-";
  metadata["namespace"] = set.meta.ns();
  metadata["ownerReferences"] = JsonArray{owner_of(set)};
  return pod;
}

class Round {
 public:
  Round(const ReplicaSetObserved& o, Time now) : o_(o), set_(o.set), now_(now) {}

  Plan run() {
    adopt_and_release();
    std::erase_if(ours_, [](const WorkloadPod* pod) { return !pod->is_active(); });
    if (!set_.meta.is_being_deleted()) match_replicas();
    write_status();
    return std::move(plan_);
  }

 private:
  void adopt_and_release() {
    const auto selector = Selector::from_label_selector(set_.selector);
    if (!selector || selector->empty()) {
      ours_ = o_.pods;
      return;
    }
    for (const auto* pod : o_.pods) {
      if (selects(*selector, *pod)) {
        ours_.push_back(pod);
      } else if (!pod->meta.is_being_deleted()) {
        set_owners(*pod, JsonArray());
      }
    }
    if (set_.meta.is_being_deleted()) return;
    for (const auto* pod : o_.orphans) {
      if (!selects(*selector, *pod) || !pod->is_active()) continue;
      set_owners(*pod, JsonArray{owner_of(set_)});
      ours_.push_back(pod);
    }
  }

  void set_owners(const WorkloadPod& pod, JsonArray owners) {
    plan_.add(runtime::Patch{
        .target = ref(pod),
        .body = JsonObject{{"metadata", JsonObject{{"ownerReferences", std::move(owners)}}}},
        .if_version = pod.meta.resource_version});
  }

  void match_replicas() {
    const auto wanted = static_cast<size_t>(std::max<int64_t>(0, set_.replicas));
    if (ours_.size() < wanted) create(std::min(wanted - ours_.size(), kMostAtOnce));
    if (ours_.size() > wanted) erase(std::min(ours_.size() - wanted, kMostAtOnce));
  }

  void create(size_t count) {
    ChildNames names;
    for (const auto* pod : o_.pods) names.take(pod->meta.name());
    for (size_t i = 0; i < count; ++i) {
      const std::string name = names.next(set_.meta.name(), set_.meta.uid.text());
      plan_.add(runtime::Create{&kube::kinds::kPod, pod_of(set_, name)});
      plan_.emit(ref(set_), Event::Type::kNormal, "SuccessfulCreate",
                 fmt::format("Created pod: {}", name));
    }
  }

  // Those that are furthest from being useful go first, then the cheapest, then the newest.
  void erase(size_t count) {
    auto pods = ours_;
    std::ranges::sort(pods, {}, [](const WorkloadPod* pod) {
      const int phase = pod->phase == "Running" ? 1 : 0;
      return std::tuple(pod->assigned, phase, pod->ready_since.has_value(), pod->deletion_cost,
                        pod->ready_since ? Time::max() - *pod->ready_since : Duration::zero(),
                        -pod->restarts, Time::max() - pod->meta.created, pod->meta.name());
    });
    for (size_t i = 0; i < count; ++i) {
      plan_.add(runtime::Delete{ref(*pods[i])});
      plan_.emit(ref(set_), Event::Type::kNormal, "SuccessfulDelete",
                 fmt::format("Deleted pod: {}", pods[i]->meta.name()));
    }
  }

  void write_status() {
    int64_t ready = 0;
    int64_t available = 0;
    for (const auto* pod : ours_) {
      if (!pod->ready_since) continue;
      ++ready;
      const Duration left = *pod->ready_since + seconds(set_.min_ready_seconds) - now_;
      if (left <= Duration::zero()) {
        ++available;
      } else {
        plan_.look_again_in(left);
      }
    }
    const auto count = static_cast<int64_t>(ours_.size());
    JsonObject status{{"replicas", count}, {"observedGeneration", set_.meta.generation}};
    if (count > 0) status["fullyLabeledReplicas"] = count;
    if (ready > 0) status["readyReplicas"] = ready;
    if (available > 0) status["availableReplicas"] = available;
    plan_.set_status(ref(set_), set_.status, status);
  }

  const ReplicaSetObserved& o_;
  const ReplicaSet& set_;
  Time now_;
  std::vector<const WorkloadPod*> ours_;
  Plan plan_;
};

}  // namespace

Plan plan(const ReplicaSetObserved& o, Time now) {
  return Round(o, now).run();
}

}  // namespace grapnel::local
