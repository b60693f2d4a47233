// Reads from a JsonObject, as document/json.h does from a Json.
#pragma once

#include <string_view>

#include "document/json.h"

namespace grapnel::local {

template <class... Keys>
const Json* at_in(const JsonObject& object, std::string_view first, Keys... rest) {
  const Json* next = object.if_contains(first);
  if constexpr (sizeof...(rest) == 0) {
    return next;
  } else {
    return next == nullptr ? nullptr : at(*next, rest...);
  }
}

}  // namespace grapnel::local
