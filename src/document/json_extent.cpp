#include "document/json_extent.h"

#include <algorithm>

namespace grapnel {

JsonExtent extent_of(const Json& value) {
  JsonExtent extent{.bytes = sizeof(Json), .height = value.is_structured() ? size_t{1} : 0};
  const auto add = [&](const Json& child) {
    const JsonExtent inner = extent_of(child);
    extent.bytes += inner.bytes;
    extent.height = std::max(extent.height, inner.height + 1);
  };
  if (const auto* string = value.if_string()) extent.bytes += string->size();
  if (const auto* array = value.if_array()) {
    for (const Json& element : *array) add(element);
  }
  if (const auto* object = value.if_object()) {
    for (const auto& [key, member] : *object) {
      extent.bytes += key.size() + 2 * sizeof(void*);
      add(member);
    }
  }
  return extent;
}

}  // namespace grapnel
