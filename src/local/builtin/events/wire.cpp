#include "local/builtin/events/plan.h"
#include "local/builtin/wiring.h"

namespace grapnel::local {

void add_event_expiry(runtime::Manager& manager) {
  auto& events =
      manager.add_informer<OldEvent>({.kind = kube::kinds::kCoreEvent}, decode_old_event);
  auto plan = [&](const kube::Key& key, Time now,
                  const runtime::Refusal*) -> std::optional<runtime::Plan> {
    const auto event = events.cache().get(key);
    if (!event) return std::nullopt;
    return local::plan(*event, now);
  };
  auto& controller = manager.add_controller(
      {.name = "event-expiry", .kind = &kube::kinds::kCoreEvent, .plan = std::move(plan)});
  manager.watch(events, controller);
}

}  // namespace grapnel::local
