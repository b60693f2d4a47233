#include "document/patch.h"

namespace grapnel {
namespace {

// What the patch makes of nothing: itself, without the nulls that would delete.
Json value_of_patch(const Json& patch) {
  Json value;
  apply_merge_patch(value, patch);
  return value;
}

std::optional<Json> difference(const JsonObject& before, const JsonObject& after) {
  JsonObject patch;
  for (const auto& [key, value] : before) {
    const Json* next = after.if_contains(key);
    if (next == nullptr) {
      patch[key] = nullptr;
    } else if (auto change = merge_patch_between(value, *next)) {
      patch[key] = std::move(*change);
    }
  }
  for (const auto& [key, value] : after) {
    // A merge patch has no way to set a null: for Kubernetes it is the same as no member.
    if (!value.is_null() && !before.contains(key)) patch[key] = value;
  }
  if (patch.empty()) return std::nullopt;
  return patch;
}

}  // namespace

void apply_merge_patch(Json& target, const Json& patch) {
  const JsonObject* changes = patch.if_object();
  if (changes == nullptr) {
    target = patch;
    return;
  }
  JsonObject& object = target.is_object() ? target.get_object() : target.emplace_object();
  object.reserve(object.size() + changes->size());
  for (const auto& [key, value] : *changes) {
    if (value.is_null()) {
      object.erase(key);
    } else if (Json* member = object.if_contains(key)) {
      apply_merge_patch(*member, value);
    } else {
      object.emplace(key, value_of_patch(value));
    }
  }
}

std::optional<Json> merge_patch_between(const Json& before, const Json& after) {
  if (before.is_object() && after.is_object()) {
    return difference(before.get_object(), after.get_object());
  }
  if (equal(before, after)) return std::nullopt;
  return after;
}

}  // namespace grapnel
