#include "local/kubelet/pod_conditions.h"

#include <algorithm>

#include "base/strings.h"

namespace grapnel::local::kubelet {
namespace {

struct Verdict {
  bool is_true = true;
  std::string reason = {};
  std::string message = {};
};

Json* find_condition(JsonArray& conditions, std::string_view type) {
  for (Json& condition : conditions) {
    if (string_or(find(condition, "type")) == type) return &condition;
  }
  return nullptr;
}

// The time of the last transition stays while the status does.
void set(JsonArray& conditions, std::string_view type, const Verdict& verdict, Time now) {
  const std::string_view status = verdict.is_true ? "True" : "False";
  JsonObject condition{{"type", type}, {"status", status}};
  if (!verdict.reason.empty()) condition["reason"] = verdict.reason;
  if (!verdict.message.empty()) condition["message"] = verdict.message;
  Json* known = find_condition(conditions, type);
  const Json* since = known == nullptr ? nullptr : find(*known, "lastTransitionTime");
  const bool is_same = since != nullptr && string_or(find(*known, "status")) == status;
  condition["lastTransitionTime"] = is_same ? *since : Json(format_time(now));
  if (const Json* probed = known == nullptr ? nullptr : find(*known, "lastProbeTime")) {
    condition["lastProbeTime"] = *probed;
  }
  if (known == nullptr) {
    conditions.push_back(std::move(condition));
  } else if (!equal(*known, condition)) {
    *known = std::move(condition);
  }
}

std::string listed(std::string_view words, const std::vector<std::string>& names) {
  return fmt::format("{}: [{}]", words, join(names, " "));
}

Verdict initialized(const Observed& o, const Progress& progress, std::string_view phase) {
  if (phase == "Succeeded") return {.is_true = true, .reason = "PodCompleted"};
  if (progress.is_initialized) return {};
  std::vector<std::string> names;
  for (const Container& container : init_containers(*o.pod)) {
    if (!is_container_ready(container, o.facts(container))) {
      names.emplace_back(container.name());
    }
  }
  return {.is_true = false,
          .reason = "ContainersNotInitialized",
          .message = listed("containers with incomplete status", names)};
}

Verdict containers_ready(const Observed& o, std::string_view phase) {
  if (phase == "Succeeded") return {.is_true = false, .reason = "PodCompleted"};
  if (phase == "Failed") return {.is_true = false, .reason = "PodFailed"};
  std::vector<std::string> names;
  for (const Container& container : all_containers(*o.pod)) {
    if (container.is_init && !container.is_sidecar()) continue;
    if (!is_container_ready(container, o.facts(container))) {
      names.emplace_back(container.name());
    }
  }
  if (names.empty()) return {};
  return {.is_true = false,
          .reason = "ContainersNotReady",
          .message = listed("containers with unready status", names)};
}

Verdict ready(const Observed& o, const Verdict& containers, JsonArray& conditions) {
  if (!containers.is_true) return containers;
  std::vector<std::string> faults;
  for (const Json& gate : elements(find(o.pod->spec(), "readinessGates"))) {
    const auto type = string_or(find(gate, "conditionType"));
    const Json* condition = find_condition(conditions, type);
    if (condition == nullptr) {
      faults.push_back(fmt::format(
          "corresponding condition of pod readiness gate \"{}\" does not exist.", type));
    } else if (string_or(find(*condition, "status")) != "True") {
      faults.push_back(
          fmt::format("the status of pod readiness gate \"{}\" is not \"True\", but {}", type,
                      string_or(find(*condition, "status"))));
    }
  }
  if (faults.empty()) return {};
  return {.is_true = false, .reason = "ReadinessGatesNotReady", .message = join(faults, ", ")};
}

}  // namespace

bool is_container_ready(const Container& container, const ContainerFacts& facts) {
  if (!facts.now) return false;
  if (container.is_init && !container.is_sidecar()) {
    return facts.now->state == ContainerState::kExited && facts.now->exit_code == 0;
  }
  return facts.now->state == ContainerState::kRunning && facts.ready && facts.started;
}

Json conditions_of(const Observed& o, const Progress& progress, std::string_view phase, Time now) {
  JsonArray conditions = elements(find(o.pod->status(), "conditions"));
  set(conditions, "PodReadyToStartContainers", {.is_true = o.has_sandbox && !progress.is_over},
      now);
  set(conditions, "Initialized", initialized(o, progress, phase), now);
  const Verdict containers = containers_ready(o, phase);
  set(conditions, "Ready", ready(o, containers, conditions), now);
  set(conditions, "ContainersReady", containers, now);
  if (find_condition(conditions, "PodScheduled") == nullptr) {
    set(conditions, "PodScheduled", {}, now);
  }
  // The scheduler wrote it first; a kubelet lists it last.
  const auto scheduled = std::ranges::find_if(conditions, [](const Json& condition) {
    return string_or(find(condition, "type")) == "PodScheduled";
  });
  std::rotate(scheduled, scheduled + 1, conditions.end());
  return conditions;
}

}  // namespace grapnel::local::kubelet
