#include "api/event.h"

#include <algorithm>

#include "api/fields.h"

namespace grapnel::api {

Result<Event> decode_event(JsonView object) {
  auto meta = kube::decode_meta(object);
  if (!meta) return fail(std::move(meta.error()));
  const auto about = object.find("regarding");
  Event event{.meta = std::move(*meta),
              .about = {interned_at(about, "namespace"), std::string(text_at(about, "name"))},
              .about_uid = kube::Uid(text_at(about, "uid")),
              .note = std::string(text_at(object, "note"))};
  event.last = event.meta.created;
  for (const auto said :
       {time_at(object.find("series"), "lastObservedTime"),
        time_at(object, "deprecatedLastTimestamp"), time_at(object, "eventTime")}) {
    if (said) event.last = std::max(event.last, *said);
  }
  return event;
}

}  // namespace grapnel::api
