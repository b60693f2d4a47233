#include "local/builtin/events/plan.h"

#include <algorithm>

namespace grapnel::local {
namespace {

constexpr hours kKept{1};

}  // namespace

Result<OldEvent> decode_old_event(JsonView object) {
  auto meta = kube::decode_meta(object);
  if (!meta) return fail(meta.error());
  OldEvent event{.meta = std::move(*meta)};
  event.last_seen = event.meta.created;
  const auto note = [&](std::optional<JsonView> value) {
    const auto time = value ? parse_time(value->as_string().value_or("")) : std::nullopt;
    if (time) event.last_seen = std::max(event.last_seen, *time);
  };
  for (const auto* field : {"firstTimestamp", "lastTimestamp", "eventTime"}) {
    note(object.find(field));
  }
  if (const auto series = object.find("series")) note(series->find("lastObservedTime"));
  return event;
}

runtime::Plan plan(const OldEvent& event, Time now) {
  runtime::Plan plan;
  if (event.meta.is_being_deleted()) return plan;
  const Duration left = event.last_seen + kKept - now;
  if (left > Duration::zero()) {
    plan.look_again_in(left);
  } else {
    plan.add(runtime::Delete{{&kube::kinds::kCoreEvent, event.meta.key, event.meta.uid}});
  }
  return plan;
}

}  // namespace grapnel::local
