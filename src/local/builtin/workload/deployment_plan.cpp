#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <numeric>
#include <set>

#include "local/builtin/naming.h"
#include "local/builtin/workload/plan.h"

namespace grapnel::local {
namespace {

using runtime::Event;
using runtime::ObjectRef;
using runtime::Plan;

ObjectRef ref(const Deployment& deployment) {
  return {&kube::kinds::kDeployment, deployment.meta.key, deployment.meta.uid};
}
ObjectRef ref(const ReplicaSet& set) {
  return {&kube::kinds::kReplicaSet, set.meta.key, set.meta.uid};
}

// "25%" of this number, or a plain number.
int64_t resolve(const Json& value, int64_t of, bool round_up) {
  if (value.is_number()) return int_or(&value);
  const std::string_view text = string_or(&value, "25%");
  int64_t percent = 0;
  std::from_chars(text.data(), text.data() + text.size(), percent);
  return (percent * of + (round_up ? 99 : 0)) / 100;
}

Json without_hash(Json pod_template) {
  if (!pod_template.is_object()) return pod_template;
  Json* metadata = pod_template.as_object().if_contains("metadata");
  if (metadata == nullptr || !metadata->is_object()) return pod_template;
  metadata->as_object().erase("creationTimestamp");
  Json* labels = metadata->as_object().if_contains("labels");
  if (labels != nullptr && labels->is_object()) labels->as_object().erase(kTemplateHash);
  return pod_template;
}

int64_t sum_of(const std::vector<const ReplicaSet*>& sets, std::string_view field) {
  return std::accumulate(sets.begin(), sets.end(), int64_t{0},
                         [&](int64_t sum, const auto* set) { return sum + set->count(field); });
}

class Round {
 public:
  Round(const DeploymentObserved& o, Time now)
      : deployment_(o.deployment), now_(now), sets_(o.sets) {
    std::ranges::sort(sets_, [](const ReplicaSet* a, const ReplicaSet* b) {
      return std::tuple(a->meta.created, a->meta.name()) <
             std::tuple(b->meta.created, b->meta.name());
    });
    const Json wanted = without_hash(deployment_.pod_template);
    for (const auto* set : sets_) {
      if (new_ == nullptr && equal(without_hash(set->pod_template), wanted)) {
        new_ = set;
      } else {
        old_.push_back(set);
      }
    }
    surge_ = deployment_.recreate ? 0 : resolve(deployment_.max_surge, deployment_.replicas, true);
    unavailable_ = deployment_.recreate
                       ? deployment_.replicas
                       : resolve(deployment_.max_unavailable, deployment_.replicas, false);
    if (!deployment_.recreate && surge_ == 0 && unavailable_ == 0) unavailable_ = 1;
    unavailable_ = std::min(unavailable_, deployment_.replicas);
  }

  Plan run() {
    if (!deployment_.meta.is_being_deleted()) {
      if (deployment_.paused) {
        scale_paused();
      } else if (deployment_.recreate) {
        recreate();
      } else {
        roll();
      }
      if (is_complete()) forget_history();
    }
    write_status();
    return std::move(plan_);
  }

 private:
  int64_t total() const {
    return std::accumulate(sets_.begin(), sets_.end(), int64_t{0},
                           [](int64_t sum, const auto* set) { return sum + set->replicas; });
  }

  bool is_complete() const {
    return new_ != nullptr && new_->count("replicas") == deployment_.replicas &&
           sum_of(sets_, "replicas") == deployment_.replicas &&
           new_->count("availableReplicas") == deployment_.replicas;
  }

  // ---- the new set ------------------------------------------------------------------------------

  int64_t next_revision() const {
    int64_t highest = 0;
    for (const auto* set : old_) highest = std::max(highest, set->revision());
    return highest + 1;
  }

  JsonObject annotations_of(int64_t revision) const {
    JsonObject annotations;
    for (const auto& [key, value] : deployment_.meta.annotations) {
      if (key.view() != "kubectl.kubernetes.io/last-applied-configuration") {
        annotations[key.view()] = value.view();
      }
    }
    annotations[kRevision] = std::to_string(revision);
    annotations[kDesiredReplicas] = std::to_string(deployment_.replicas);
    annotations[kMaxReplicas] = std::to_string(deployment_.replicas + surge_);
    return annotations;
  }

  void create_new(int64_t replicas) {
    const std::string hash =
        letters_of(hash_of(to_text(without_hash(deployment_.pod_template))), 10);
    Json pod_template = deployment_.pod_template;
    if (!pod_template.is_object()) pod_template = JsonObject();
    auto& labels = ensure_object(ensure_object(pod_template.as_object(), "metadata"), "labels");
    labels[kTemplateHash] = hash;
    Json selector = deployment_.selector;
    if (!selector.is_object()) selector = JsonObject();
    ensure_object(selector.as_object(), "matchLabels")[kTemplateHash] = hash;
    const std::string name = fmt::format("{}-{}", deployment_.meta.name().substr(0, 52), hash);
    JsonObject metadata{
        {"name", name},
        {"namespace", deployment_.meta.ns()},
        {"labels", labels},
        {"annotations", annotations_of(next_revision())},
        {"ownerReferences", JsonArray{JsonObject{{"apiVersion", "apps/v1"},
                                                 {"kind", "Deployment"},
                                                 {"name", deployment_.meta.name()},
                                                 {"uid", deployment_.meta.uid.text()},
                                                 {"controller", true},
                                                 {"blockOwnerDeletion", true}}}}};
    JsonObject spec{{"replicas", replicas},
                    {"selector", std::move(selector)},
                    {"template", std::move(pod_template)}};
    if (deployment_.min_ready_seconds > 0) spec["minReadySeconds"] = deployment_.min_ready_seconds;
    plan_.add(
        runtime::Create{&kube::kinds::kReplicaSet, JsonObject{{"apiVersion", "apps/v1"},
                                                              {"kind", "ReplicaSet"},
                                                              {"metadata", std::move(metadata)},
                                                              {"spec", std::move(spec)}}});
    revise_deployment(next_revision());
    created_ = name;
    if (replicas > 0) say_scaled(name, 0, replicas);
  }

  void revise_deployment(int64_t revision) {
    const std::string text = std::to_string(revision);
    if (deployment_.meta.annotations.get(kRevision) == text) return;
    plan_.add(runtime::Patch{
        .target = ref(deployment_),
        .body =
            JsonObject{{"metadata", JsonObject{{"annotations", JsonObject{{kRevision, text}}}}}}});
  }

  // A set that becomes the new one again gets a new number; sizes are noted for others to read.
  void keep_annotations() {
    if (new_ == nullptr) return;
    const int64_t revision = std::max(new_->revision(), next_revision());
    JsonObject changed;
    for (const auto& [key, value] : annotations_of(revision)) {
      const std::string_view name = key;
      if (new_->meta.annotations.get(name) != string_or(&value)) changed[name] = value;
    }
    if (!changed.empty()) {
      plan_.add(runtime::Patch{
          .target = ref(*new_),
          .body = JsonObject{{"metadata", JsonObject{{"annotations", std::move(changed)}}}}});
    }
    revise_deployment(revision);
  }

  // ---- sizes ------------------------------------------------------------------------------------

  void say_scaled(const std::string& name, int64_t from, int64_t to) {
    plan_.emit(ref(deployment_), Event::Type::kNormal, "ScalingReplicaSet",
               fmt::format("Scaled {} replica set {} from {} to {}", to > from ? "up" : "down",
                           name, from, to));
  }

  void scale(const ReplicaSet& set, int64_t replicas) {
    if (set.replicas == replicas) return;
    plan_.add(runtime::Patch{
        .target = ref(set),
        .body =
            JsonObject{
                {"metadata",
                 JsonObject{
                     {"annotations",
                      JsonObject{{kDesiredReplicas, std::to_string(deployment_.replicas)},
                                 {kMaxReplicas, std::to_string(deployment_.replicas + surge_)}}}}},
                {"spec", JsonObject{{"replicas", replicas}}}},
        .if_version = set.meta.resource_version});
    say_scaled(set.meta.name(), set.replicas, replicas);
  }

  void scale_paused() {
    const ReplicaSet* only = new_;
    for (const auto* set : sets_) {
      if (set->replicas > 0) only = set;
    }
    const bool alone =
        std::ranges::count_if(sets_, [](const auto* set) { return set->replicas > 0; }) <= 1;
    if (only != nullptr && alone) scale(*only, deployment_.replicas);
  }

  void recreate() {
    bool any_left = false;
    for (const auto* set : old_) {
      scale(*set, 0);
      any_left = any_left || set->replicas > 0 || set->count("replicas") > 0;
    }
    keep_annotations();
    if (any_left) return;
    if (new_ == nullptr) return create_new(deployment_.replicas);
    scale(*new_, deployment_.replicas);
  }

  void roll() {
    const int64_t most = deployment_.replicas + surge_;
    if (new_ == nullptr) {
      return create_new(std::clamp<int64_t>(most - total(), 0, deployment_.replicas));
    }
    keep_annotations();
    if (new_->replicas > deployment_.replicas) return scale(*new_, deployment_.replicas);
    const int64_t room = std::max<int64_t>(0, most - total());
    const int64_t more = std::min(room, deployment_.replicas - new_->replicas);
    if (more > 0) return scale(*new_, new_->replicas + more);
    shrink_old();
  }

  // First pods that serve nobody, then as many of the others as may be missed.
  void shrink_old() {
    const int64_t least = deployment_.replicas - unavailable_;
    const int64_t not_yet = new_->replicas - new_->count("availableReplicas");
    int64_t may_go = total() - least - not_yet;
    std::vector<std::pair<const ReplicaSet*, int64_t>> sizes;
    for (const auto* set : old_) sizes.emplace_back(set, set->replicas);
    for (auto& [set, size] : sizes) {
      const int64_t idle = std::clamp<int64_t>(size - set->count("availableReplicas"), 0, size);
      const int64_t less = std::clamp<int64_t>(may_go, 0, idle);
      size -= less;
      may_go -= less;
    }
    int64_t spare = sum_of(sets_, "availableReplicas") - least;
    spare = std::min(spare, may_go);
    for (auto& [set, size] : sizes) {
      const int64_t less = std::clamp<int64_t>(spare, 0, size);
      size -= less;
      spare -= less;
    }
    for (const auto& [set, size] : sizes) scale(*set, size);
  }

  void forget_history() {
    std::vector<const ReplicaSet*> idle;
    for (const auto* set : old_) {
      if (set->replicas == 0 && set->count("replicas") == 0 && !set->meta.is_being_deleted()) {
        idle.push_back(set);
      }
    }
    std::ranges::sort(idle, {}, [](const ReplicaSet* set) { return set->revision(); });
    const auto kept = static_cast<size_t>(std::max<int64_t>(0, deployment_.history_limit));
    for (size_t i = 0; i + kept < idle.size(); ++i) plan_.add(runtime::Delete{ref(*idle[i])});
  }

  // ---- status -----------------------------------------------------------------------------------

  struct Condition {
    std::string_view type;
    std::string_view status;
    std::string_view reason;
    std::string message;
  };

  const Json* known_condition(std::string_view type) const {
    const Json* list = find(deployment_.status, "conditions");
    if (list == nullptr || !list->is_array()) return nullptr;
    for (const Json& one : list->as_array()) {
      if (string_or(find(one, "type")) == type) return &one;
    }
    return nullptr;
  }

  Condition availability() const {
    const int64_t least = deployment_.replicas - unavailable_;
    if (sum_of(sets_, "availableReplicas") >= least) {
      return {"Available", "True", "MinimumReplicasAvailable",
              "Deployment has minimum availability."};
    }
    return {"Available", "False", "MinimumReplicasUnavailable",
            "Deployment does not have minimum availability."};
  }

  bool has_progressed() const {
    return new_ == nullptr ||
           new_->count("replicas") > int_or(find(deployment_.status, "updatedReplicas")) ||
           sum_of(sets_, "readyReplicas") > int_or(find(deployment_.status, "readyReplicas")) ||
           sum_of(sets_, "availableReplicas") >
               int_or(find(deployment_.status, "availableReplicas")) ||
           sum_of(old_, "replicas") < int_or(find(deployment_.status, "replicas")) -
                                          int_or(find(deployment_.status, "updatedReplicas"));
  }

  Condition progress() {
    const std::string name = new_ != nullptr ? new_->meta.name() : created_;
    const Json* known = known_condition("Progressing");
    const auto reason = known == nullptr ? "" : string_or(find(*known, "reason"));
    if (deployment_.paused) {
      return {"Progressing", "Unknown", "DeploymentPaused", "Deployment is paused"};
    }
    if (is_complete()) {
      return {"Progressing", "True", "NewReplicaSetAvailable",
              fmt::format("ReplicaSet \"{}\" has successfully progressed.", name)};
    }
    if (!created_.empty()) {
      return {"Progressing", "True", "NewReplicaSetCreated",
              fmt::format("Created new replica set \"{}\"", name)};
    }
    if (known != nullptr && !has_progressed()) {
      const auto since = parse_time(string_or(find(*known, "lastUpdateTime"))).value_or(now_);
      const Duration left = since + seconds(deployment_.progress_deadline_seconds) - now_;
      if (left <= Duration::zero() || reason == "ProgressDeadlineExceeded") {
        return {"Progressing", "False", "ProgressDeadlineExceeded",
                fmt::format("ReplicaSet \"{}\" has timed out progressing.", name)};
      }
      plan_.look_again_in(left);
      if (reason == "NewReplicaSetCreated" || reason == "ReplicaSetUpdated") {
        return {"Progressing", "True", reason, std::string(string_or(find(*known, "message")))};
      }
    }
    return {"Progressing", "True", "ReplicaSetUpdated",
            fmt::format("ReplicaSet \"{}\" is progressing.", name)};
  }

  JsonObject encode(const Condition& condition) const {
    const Json* known = known_condition(condition.type);
    std::string changed = format_time(now_);
    std::string updated = changed;
    if (known != nullptr && string_or(find(*known, "status")) == condition.status) {
      changed = string_or(find(*known, "lastTransitionTime"));
      const bool same = string_or(find(*known, "reason")) == condition.reason;
      const bool moving = condition.reason == "ReplicaSetUpdated" && has_progressed();
      if (same && !moving) updated = string_or(find(*known, "lastUpdateTime"));
    }
    return {{"type", condition.type},     {"status", condition.status},
            {"lastUpdateTime", updated},  {"lastTransitionTime", changed},
            {"reason", condition.reason}, {"message", condition.message}};
  }

  void write_status() {
    const int64_t available = sum_of(sets_, "availableReplicas");
    JsonObject status{{"observedGeneration", deployment_.meta.generation}};
    const auto set_unless_zero = [&](std::string_view field, int64_t value) {
      if (value > 0) status[field] = value;
    };
    set_unless_zero("replicas", sum_of(sets_, "replicas"));
    set_unless_zero("updatedReplicas", new_ == nullptr ? 0 : new_->count("replicas"));
    set_unless_zero("readyReplicas", sum_of(sets_, "readyReplicas"));
    set_unless_zero("availableReplicas", available);
    set_unless_zero("unavailableReplicas", total() - available);
    status["conditions"] = JsonArray{encode(availability()), encode(progress())};
    plan_.set_status(ref(deployment_), deployment_.status, status);
  }

  const Deployment& deployment_;
  Time now_;
  std::vector<const ReplicaSet*> sets_;  // oldest first
  std::vector<const ReplicaSet*> old_;
  const ReplicaSet* new_ = nullptr;
  std::string created_;  // the name of the set that this plan creates
  int64_t surge_ = 0;
  int64_t unavailable_ = 0;
  Plan plan_;
};

}  // namespace

Plan plan(const DeploymentObserved& o, Time now) {
  return Round(o, now).run();
}

}  // namespace grapnel::local
