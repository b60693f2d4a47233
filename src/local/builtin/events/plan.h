// Deletes Events an hour after they were last seen.
#pragma once

#include "document/json_view.h"
#include "kube/meta.h"
#include "runtime/plan.h"

namespace grapnel::local {

struct OldEvent {
  kube::Meta meta;
  Time last_seen{};
  bool operator==(const OldEvent&) const = default;
};
Result<OldEvent> decode_old_event(JsonView object);

runtime::Plan plan(const OldEvent& event, Time now);

}  // namespace grapnel::local
