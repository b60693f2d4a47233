#include <algorithm>

#include "base/quantity.h"
#include "local/builtin/scheduler/plan.h"

namespace grapnel::local {
namespace {

std::string_view text_at(JsonView value, std::string_view key) {
  const auto found = value.find(key);
  return found ? found->as_string().value_or("") : "";
}

// A quantity is a string, or a number where a person wrote it so.
std::optional<int64_t> amount_of(JsonView value) {
  if (const auto number = value.as_int()) return Quantity::from_units(*number).milli();
  const auto quantity = Quantity::parse(value.as_string().value_or(""));
  return quantity ? std::optional(quantity->milli()) : std::nullopt;
}

Amounts amounts_of(const std::optional<JsonView>& map) {
  Amounts amounts;
  if (!map) return amounts;
  map->for_each_member([&](std::string_view name, JsonView value) {
    if (const auto amount = amount_of(value)) amounts[Interned(name)] = *amount;
    return true;
  });
  return amounts;
}

// What a container asks for: its requests, and its limits where it says no more.
Amounts requests_of(JsonView container) {
  const auto resources = container.find("resources");
  if (!resources) return {};
  Amounts amounts = amounts_of(resources->find("requests"));
  for (const auto& [name, limit] : amounts_of(resources->find("limits"))) {
    amounts.try_emplace(name, limit);
  }
  return amounts;
}

bool is_sidecar(JsonView init_container) {
  return text_at(init_container, "restartPolicy") == "Always";
}

void add(Amounts& sum, const Amounts& more) {
  for (const auto& [name, amount] : more) sum[name] += amount;
}

// All containers run at once; init containers one after the other before them, but sidecars stay.
Amounts pod_requests(JsonView spec) {
  Amounts running;
  Amounts largest_init;
  if (const auto init = spec.find("initContainers")) {
    init->for_each_element([&](size_t, JsonView container) {
      Amounts now = requests_of(container);
      if (is_sidecar(container)) {
        add(running, now);
        return true;
      }
      add(now, running);
      for (const auto& [name, amount] : now) {
        largest_init[name] = std::max(largest_init[name], amount);
      }
      return true;
    });
  }
  if (const auto containers = spec.find("containers")) {
    containers->for_each_element([&](size_t, JsonView container) {
      add(running, requests_of(container));
      return true;
    });
  }
  for (const auto& [name, amount] : largest_init) running[name] = std::max(running[name], amount);
  return running;
}

// The status of one condition, "" when it is not there.
std::optional<JsonView> condition_of(const std::optional<JsonView>& status, std::string_view type) {
  std::optional<JsonView> found;
  const auto conditions = status ? status->find("conditions") : std::nullopt;
  if (!conditions) return found;
  conditions->for_each_element([&](size_t, JsonView condition) {
    if (text_at(condition, "type") == type) found = condition;
    return !found;
  });
  return found;
}

}  // namespace

Result<SchedulerNode> decode_scheduler_node(JsonView object) {
  auto meta = kube::decode_meta(object, {.all_labels = true});
  if (!meta) return fail(meta.error());
  SchedulerNode node{.meta = std::move(*meta)};
  const auto status = object.find("status");
  if (status) node.allocatable = amounts_of(status->find("allocatable"));
  if (const auto ready = condition_of(status, "Ready")) {
    node.ready = text_at(*ready, "status") == "True";
  }
  if (const auto spec = object.find("spec")) {
    const auto unschedulable = spec->find("unschedulable");
    node.unschedulable = unschedulable && unschedulable->as_bool().value_or(false);
  }
  return node;
}

Result<SchedulerPod> decode_scheduler_pod(JsonView object) {
  auto meta = kube::decode_meta(object);
  if (!meta) return fail(meta.error());
  SchedulerPod pod{.meta = std::move(*meta)};
  const auto status = object.find("status");
  const auto phase = status ? text_at(*status, "phase") : "";
  pod.over = phase == "Succeeded" || phase == "Failed";
  if (const auto scheduled = condition_of(status, "PodScheduled");
      scheduled && text_at(*scheduled, "status") == "False") {
    pod.unscheduled_message = text_at(*scheduled, "message");
  }
  const auto spec = object.find("spec");
  if (!spec) return pod;
  pod.node = Interned(text_at(*spec, "nodeName"));
  pod.requests = pod_requests(*spec);
  if (const auto selector = spec->find("nodeSelector")) {
    selector->for_each_member([&](std::string_view key, JsonView value) {
      pod.node_selector.emplace(key, value.as_string().value_or(""));
      return true;
    });
  }
  if (const auto volumes = spec->find("volumes")) {
    volumes->for_each_element([&](size_t, JsonView volume) {
      if (const auto claim = volume.find("persistentVolumeClaim")) {
        pod.claims.emplace_back(text_at(*claim, "claimName"));
      }
      return true;
    });
  }
  if (const auto priority = spec->find("priority")) pod.priority = priority->as_int().value_or(0);
  pod.preempts = text_at(*spec, "preemptionPolicy") != "Never";
  if (const auto gates = spec->find("schedulingGates")) pod.gated = gates->size() > 0;
  return pod;
}

}  // namespace grapnel::local
