// JSON documents that are built or edited. For reading what others sent, prefer JsonView: it is
// many times lighter.
#pragma once

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/value.hpp>
#include <string>
#include <string_view>

#include "base/result.h"

namespace grapnel {

using Json = boost::json::value;
using JsonObject = boost::json::object;
using JsonArray = boost::json::array;

// What a text may be, here and in JsonView. No Kubernetes object comes near either.
constexpr size_t kMaxJsonDepth = 100;
constexpr size_t kMaxJsonSize = size_t{128} << 20;

// int64 stays int64; the whole text must be one value.
Result<Json> parse_json(std::string_view text);
std::string to_text(const Json& value);         // compact, members in their order
std::string to_pretty_text(const Json& value);  // as kubectl -o json prints: four spaces, sorted

void append_quoted(std::string& out, std::string_view text);  // as a JSON string

// at(pod, "metadata", "labels", "app"): the value there, or nullptr when any step is missing or is
// not an object.
const Json* find(const Json& value, std::string_view key);
template <class... Keys>
const Json* at(const Json& value, std::string_view first, Keys... rest) {
  const Json* next = find(value, first);
  if constexpr (sizeof...(rest) == 0) {
    return next;
  } else {
    return next == nullptr ? nullptr : at(*next, rest...);
  }
}

// The text or number there, or the fallback when it is missing or of another type.
std::string_view string_or(const Json* value, std::string_view fallback = "");
int64_t int_or(const Json* value, int64_t fallback = 0);
bool bool_or(const Json* value, bool fallback = false);

// The object at that key, created when it is missing (or when something else is there).
JsonObject& ensure_object(JsonObject& parent, std::string_view key);

// Equal as Kubernetes means it: key order does not matter, 1 equals 1.0.
bool equal(const Json& a, const Json& b);

// A number as Go's encoder writes it: the shortest text that reads back as the same value.
std::string number_text(double value);

}  // namespace grapnel
