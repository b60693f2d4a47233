#include "api/pod.h"

#include <algorithm>
#include <array>

#include "api/fields.h"

namespace grapnel::api {
namespace {

constexpr std::array<std::string_view, 5> kPhases{"Pending", "Running", "Succeeded", "Failed",
                                                  "Unknown"};

Pod::Phase phase_of(std::string_view text) {
  const auto found = std::ranges::find(kPhases, text);
  if (found == kPhases.end()) return Pod::Phase::kPending;
  return static_cast<Pod::Phase>(found - kPhases.begin());
}

ContainerStatus decode_container(JsonView status, bool is_init) {
  ContainerStatus container{.name = interned_at(status, "name"),
                            .is_init = is_init,
                            .ready = bool_at(status, "ready"),
                            .restarts = count_at(status, "restartCount").value_or(0)};
  const auto state = status.find("state");
  std::optional<JsonView> detail = view_at(state, "waiting");
  if (const auto terminated = view_at(state, "terminated")) {
    container.state = ContainerStatus::State::kTerminated;
    container.exit_code = count_at(terminated, "exitCode").value_or(0);
    detail = terminated;
  } else if (view_at(state, "running")) {
    container.state = ContainerStatus::State::kRunning;
  }
  container.reason = interned_at(detail, "reason");
  container.message = std::string(text_at(detail, "message"));
  return container;
}

bool is_kept(std::string_view type, bool is_true) {
  if (type == "DisruptionTarget") return is_true;
  return (type == "Ready" || type == "PodScheduled") && !is_true;
}

}  // namespace

std::string_view to_string(Pod::Phase phase) {
  return kPhases[static_cast<size_t>(phase)];
}

const ContainerStatus* Pod::container(std::string_view name) const {
  const auto found = std::ranges::find_if(
      containers, [&](const ContainerStatus& c) { return c.name.view() == name; });
  return found == containers.end() ? nullptr : &*found;
}

const PodCondition* Pod::condition(std::string_view type) const {
  const auto found = std::ranges::find_if(
      conditions, [&](const PodCondition& c) { return c.type.view() == type; });
  return found == conditions.end() ? nullptr : &*found;
}

Result<Pod> decode_pod(JsonView object, const kube::MetaOptions& kept) {
  auto meta = kube::decode_meta(object, kept);
  if (!meta) return fail(std::move(meta.error()));
  const auto spec = object.find("spec");
  const auto status = object.find("status");
  Pod pod{.meta = std::move(*meta),
          .node = interned_at(spec, "nodeName"),
          .phase = phase_of(text_at(status, "phase")),
          .restarts_never = text_at(spec, "restartPolicy") == "Never",
          .ip = std::string(text_at(status, "podIP")),
          .reason = interned_at(status, "reason")};
  for_each_at(spec, "schedulingGates",
              [&](JsonView gate) { pod.gates.push_back(interned_at(gate, "name")); });
  pod.node_selector = strings_at(spec, "nodeSelector");
  for_each_at(status, "conditions", [&](JsonView condition) {
    const auto type = text_at(condition, "type");
    const bool is_true = text_at(condition, "status") == "True";
    if (type == "Ready") pod.ready = is_true;
    if (!is_kept(type, is_true)) return;
    pod.conditions.push_back(
        {.type = Interned(type),
         .is_true = is_true,
         .reason = interned_at(condition, "reason"),
         .message = std::string(text_at(condition, "message")),
         .last_transition_time = time_at(condition, "lastTransitionTime").value_or(Time{})});
  });
  for_each_at(status, "initContainerStatuses",
              [&](JsonView c) { pod.containers.push_back(decode_container(c, true)); });
  for_each_at(status, "containerStatuses",
              [&](JsonView c) { pod.containers.push_back(decode_container(c, false)); });
  return pod;
}

}  // namespace grapnel::api
