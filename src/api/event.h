// An Event as planners read it: what another controller said about an object.
#pragma once

#include <string>

#include "base/result.h"
#include "base/time.h"
#include "document/json_view.h"
#include "kube/meta.h"

namespace grapnel::api {

struct Event {
  kube::Meta meta;
  kube::Key about;  // the object it regards
  kube::Uid about_uid;
  std::string note;
  Time last{};  // when it was said last; the same words are counted in one event
  bool operator==(const Event&) const = default;
};

// From events.k8s.io/v1, where events written through core/v1 appear too.
Result<Event> decode_event(JsonView object);

}  // namespace grapnel::api
