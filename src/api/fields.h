// Reading single fields for projections: a field that is missing or of another type is its default,
// as the API server has checked it already.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/interner.h"
#include "base/time.h"
#include "document/json_view.h"
#include "kube/meta.h"

namespace grapnel::api {

inline std::optional<JsonView> view_at(const std::optional<JsonView>& value, std::string_view key) {
  return value ? value->find(key) : std::nullopt;
}

inline std::string_view text_at(const std::optional<JsonView>& value, std::string_view key) {
  const auto member = view_at(value, key);
  return member ? member->as_string().value_or("") : "";
}

inline Interned interned_at(const std::optional<JsonView>& value, std::string_view key) {
  return Interned(text_at(value, key));
}

inline bool bool_at(const std::optional<JsonView>& value, std::string_view key) {
  const auto member = view_at(value, key);
  return member && member->as_bool().value_or(false);
}

inline std::optional<int32_t> count_at(const std::optional<JsonView>& value, std::string_view key) {
  const auto member = view_at(value, key);
  const auto number = member ? member->as_int() : std::nullopt;
  if (!number || *number < INT32_MIN || *number > INT32_MAX) return std::nullopt;
  return static_cast<int32_t>(*number);
}

inline std::optional<Time> time_at(const std::optional<JsonView>& value, std::string_view key) {
  const auto text = text_at(value, key);
  return text.empty() ? std::nullopt : parse_time(text);
}

inline kube::StringMap strings_at(const std::optional<JsonView>& value, std::string_view key) {
  std::vector<std::pair<Interned, Interned>> entries;
  if (const auto map = view_at(value, key)) {
    map->for_each_member([&](std::string_view name, JsonView member) {
      entries.emplace_back(Interned(name), Interned(member.as_string().value_or("")));
      return true;
    });
  }
  return kube::StringMap(std::move(entries));
}

// Calls f for each element of the list there.
template <class F>
void for_each_at(const std::optional<JsonView>& value, std::string_view key, F&& f) {
  const auto list = view_at(value, key);
  if (!list) return;
  list->for_each_element([&](size_t, JsonView element) {
    f(element);
    return true;
  });
}

}  // namespace grapnel::api
