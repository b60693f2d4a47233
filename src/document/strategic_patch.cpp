#include <absl/container/flat_hash_map.h>

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "base/strings.h"
#include "document/merge_keys.h"
#include "document/patch.h"

namespace grapnel {
namespace {

constexpr std::string_view kPatch = "$patch";
constexpr std::string_view kRetainKeys = "$retainKeys";
constexpr std::string_view kDelete = "$deleteFromPrimitiveList/";
constexpr std::string_view kOrder = "$setElementOrder/";

Result<> merge_object(JsonObject& target, const JsonObject& patch, std::string_view type);

template <class... Args>
Failure refuse(fmt::format_string<Args...> text, Args&&... args) {
  return fail(Reason::kBadRequest, text, std::forward<Args>(args)...);
}

bool is_directive(std::string_view key) {
  return key == kPatch || key == kRetainKeys || key.starts_with(kDelete) || key.starts_with(kOrder);
}

// What a patch makes of nothing: without nulls and directives. Nothing for an object with a $patch
// of its own, of which there is nothing to delete or replace.
std::optional<Json> plain_value(const Json& patch) {
  if (const JsonObject* object = patch.if_object()) {
    if (object->contains(kPatch)) return std::nullopt;
    JsonObject plain;
    for (const auto& [key, value] : *object) {
      if (value.is_null() || is_directive(key)) continue;
      if (auto member = plain_value(value)) plain[key] = std::move(*member);
    }
    return plain;
  }
  if (const JsonArray* array = patch.if_array()) {
    JsonArray plain;
    for (const Json& element : *array) {
      if (auto value = plain_value(element)) plain.push_back(std::move(*value));
    }
    return plain;
  }
  return patch;
}

void set_plain(JsonObject& target, std::string_view key, const Json& patch) {
  if (auto value = plain_value(patch)) {
    target[key] = std::move(*value);
  } else {
    target.erase(key);
  }
}

// What tells one element of a list from another: the value of its merge key, or itself in a list of
// scalars.
const Json* identity(const Json& element, std::string_view key) {
  return key.empty() ? &element : find(element, key);
}

// Finds elements by identity: lists that others send may be long.
class Index {
 public:
  explicit Index(std::string_view key) : key_(key) {}
  Index(const JsonArray& list, std::string_view key) : key_(key) {
    for (const Json& element : list) add(element);
  }

  void add(const Json& element) {
    if (const Json* value = identity(element, key_)) places_.emplace(to_text(*value), size_);
    ++size_;
  }
  // The position of the first such element.
  std::optional<size_t> find(const Json& element) const {
    const Json* value = identity(element, key_);
    const auto place = value == nullptr ? places_.end() : places_.find(to_text(*value));
    return place == places_.end() ? std::nullopt : std::optional(place->second);
  }

 private:
  std::string_view key_;
  absl::flat_hash_map<std::string, size_t> places_;
  size_t size_ = 0;
};

Result<> check_elements(const JsonArray& list, std::string_view key) {
  for (const Json& element : list) {
    if (element.is_object() == key.empty() || element.is_array()) {
      return refuse("a list that merges holds {} where {} were expected",
                    element.is_object() ? "objects" : "other values",
                    key.empty() ? "scalars" : "objects");
    }
    const Json* value = identity(element, key);
    if (value == nullptr || (value->is_null() && !key.empty())) {
      return refuse("an element of a list has no {}, by which the list merges", key);
    }
  }
  return {};
}

// The elements in the order that `wanted` gives for those it names; the others stay where they were
// relative to each other and, as far as that can be, relative to the named ones (`before` is the
// list as it was).
JsonArray in_order(JsonArray merged, const JsonArray& wanted, const JsonArray& before,
                   std::string_view key) {
  struct Ranked {
    std::optional<size_t> rank;
    std::optional<size_t> was;
    size_t place;
  };
  const Index wanted_index(wanted, key);
  const Index before_index(before, key);
  std::vector<Ranked> named;
  std::vector<Ranked> others;
  for (size_t i = 0; i < merged.size(); ++i) {
    const auto rank = wanted_index.find(merged[i]);
    const auto was = before_index.find(merged[i]);
    (rank ? named : others).push_back({.rank = rank ? rank : was, .was = was, .place = i});
  }
  const auto by_rank = [](const Ranked& r) { return std::pair(r.rank, r.place); };
  std::ranges::sort(named, {}, by_rank);
  std::ranges::sort(others, {}, by_rank);
  JsonArray result;
  result.reserve(merged.size());
  auto other = others.begin();
  for (const Ranked& element : named) {
    while (other != others.end() && element.was && other->was && *other->was < *element.was) {
      result.push_back(std::move(merged[(other++)->place]));
    }
    result.push_back(std::move(merged[element.place]));
  }
  for (; other != others.end(); ++other) result.push_back(std::move(merged[other->place]));
  return result;
}

// Takes the elements with a $patch out of a list patch and carries them out on the target.
Result<JsonArray> carry_out_directives(JsonArray& target, const JsonArray& patch,
                                       std::string_view key) {
  JsonArray rest;
  Index deleted(key);
  bool replace = false;
  for (const Json& element : patch) {
    const Json* directive = find(element, kPatch);
    if (directive == nullptr) {
      rest.push_back(element);
    } else if (string_or(directive) == "delete") {
      if (find(element, key) == nullptr) {
        return refuse("$patch: delete needs {}, by which the list merges", key);
      }
      deleted.add(element);
    } else if (string_or(directive) == "replace") {
      replace = true;
    } else {
      return refuse("$patch in a list must be delete or replace, not {}", to_text(*directive));
    }
  }
  JsonArray left;
  for (Json& element : target) {
    if (!replace && !deleted.find(element)) left.push_back(std::move(element));
  }
  target = std::move(left);
  return rest;
}

Result<> merge_objects_by_key(JsonArray& target, const JsonArray& patch, const MergeRule& rule) {
  auto changes = carry_out_directives(target, patch, rule.key);
  if (!changes) return fail(std::move(changes.error()));
  const JsonArray before = target;
  for (const JsonArray* list : {&before, std::as_const(changes).operator->()}) {
    if (auto ok = check_elements(*list, rule.key); !ok) return ok;
  }
  Index index(target, rule.key);
  for (const Json& change : *changes) {
    const auto at = index.find(change);
    if (!at) {
      target.push_back(*plain_value(change));
      index.add(change);
      continue;
    }
    JsonObject& element = target[*at].get_object();
    if (auto ok = merge_object(element, change.get_object(), rule.child); !ok) return ok;
  }
  target = in_order(std::move(target), *changes, before, rule.key);
  return {};
}

Result<> merge_set(JsonArray& target, const JsonArray& patch) {
  const JsonArray before = target;
  JsonArray merged;
  Index index("");
  for (const JsonArray* list : {&before, &patch}) {
    if (auto ok = check_elements(*list, ""); !ok) return ok;
    for (const Json& element : *list) {
      if (index.find(element)) continue;
      index.add(element);
      merged.push_back(element);
    }
  }
  target = in_order(std::move(merged), patch, before, "");
  return {};
}

Result<> merge_list(JsonArray& target, const JsonArray& patch, const MergeRule& rule) {
  if (rule.strategy != MergeStrategy::kMerge) {
    target = patch;
    return {};
  }
  return rule.key.empty() ? merge_set(target, patch) : merge_objects_by_key(target, patch, rule);
}

// $setElementOrder must name what the patch's list holds, in the same order.
Result<> check_order(const JsonArray& patch, const JsonArray& order, std::string_view key) {
  if (order.empty()) return {};
  size_t at = 0;
  for (const Json& element : patch) {
    if (find(element, kPatch) != nullptr) continue;
    const Json* wanted = identity(element, key);
    if (wanted == nullptr) return refuse("an element of a list has no {}", key);
    while (at < order.size() && !equal(*identity(order[at], key), *wanted)) ++at;
    if (at++ >= order.size()) {
      return refuse("the order in the patch's list does not match $setElementOrder");
    }
  }
  return {};
}

// The list as it was, with new elements in the places of deleted ones: so a renamed container stays
// where kubectl apply would leave it.
JsonArray with_successors(const JsonArray& before, const JsonArray& after, std::string_view key) {
  const Index still(after, key);
  const Index known(before, key);
  JsonArray order;
  for (const Json& element : before) {
    if (still.find(element)) order.push_back(element);
  }
  for (const Json& element : after) {
    if (order.size() == before.size()) break;
    if (!known.find(element)) order.push_back(element);
  }
  return order;
}

// One "$setElementOrder/field" of a patch, together with the field's own patch.
Result<> merge_ordered(JsonObject& target, const JsonObject& patch, std::string_view field,
                       const Json& order, const MergeRule& rule) {
  const Json* change = patch.if_contains(field);
  Json* value = target.if_contains(field);
  if (change == nullptr && value == nullptr) return {};
  if (!order.is_array() || (change != nullptr && !change->is_array()) ||
      (value != nullptr && !value->is_array())) {
    return refuse("$setElementOrder/{} and the field must be lists", field);
  }
  if (rule.strategy != MergeStrategy::kMerge) {
    return refuse("$setElementOrder/{}: the list does not merge", field);
  }
  if (auto ok = check_elements(order.get_array(), rule.key); !ok) return ok;
  if (change != nullptr) {
    if (auto ok = check_order(change->get_array(), order.get_array(), rule.key); !ok) return ok;
  }
  const JsonArray before = value == nullptr ? JsonArray() : value->get_array();
  if (value == nullptr) {
    set_plain(target, field, *change);
    value = target.if_contains(field);
  } else if (change != nullptr) {
    if (auto ok = merge_list(value->get_array(), change->get_array(), rule); !ok) return ok;
  }
  JsonArray& list = value->get_array();
  if (auto ok = check_elements(list, rule.key); !ok) return ok;
  const JsonArray places = with_successors(before, list, rule.key);
  list = in_order(std::move(list), order.get_array(), places, rule.key);
  return {};
}

Result<> delete_from_set(JsonObject& target, std::string_view field, const Json& values) {
  if (!values.is_array()) return refuse("$deleteFromPrimitiveList/{} must be a list", field);
  Json* list = target.if_contains(field);
  if (list == nullptr || !list->is_array()) return {};
  JsonArray left;
  const Index deleted(values.get_array(), "");
  for (const Json& element : list->get_array()) {
    if (element.is_structured()) {
      return refuse("$deleteFromPrimitiveList/{}: not a list of scalars", field);
    }
    if (!deleted.find(element)) left.push_back(element);
  }
  *list = std::move(left);
  return {};
}

Result<> retain_keys(JsonObject& target, const JsonObject& patch, const Json& keys) {
  if (!keys.is_array()) return refuse("$retainKeys must be a list");
  const Index kept(keys.get_array(), "");
  const auto retained = [&](std::string_view key) { return kept.find(Json(key)).has_value(); };
  for (const auto& [key, value] : patch) {
    if (!value.is_null() && !is_directive(key) && !retained(key)) {
      return refuse("the patch sets {}, which is not in its $retainKeys", std::string_view(key));
    }
  }
  std::vector<std::string> dropped;
  for (const auto& [key, value] : target) {
    if (!retained(key)) dropped.emplace_back(key);
  }
  for (const std::string& key : dropped) target.erase(key);
  return {};
}

Result<> merge_member(JsonObject& target, std::string_view key, const Json& patch,
                      std::string_view type) {
  if (patch.is_null()) {
    target.erase(key);
    return {};
  }
  Json* value = target.if_contains(key);
  const bool merges = value != nullptr && value->kind() == patch.kind() && patch.is_structured();
  if (!merges) {
    set_plain(target, key, patch);
    return {};
  }
  const MergeRule rule = merge_rule(type, key);
  if (patch.is_array()) return merge_list(value->get_array(), patch.get_array(), rule);
  if (rule.strategy == MergeStrategy::kReplace) {
    set_plain(target, key, patch);
    return {};
  }
  return merge_object(value->get_object(), patch.get_object(), rule.child);
}

Result<> merge_object(JsonObject& target, const JsonObject& patch, std::string_view type) {
  if (const Json* directive = patch.if_contains(kPatch)) {
    const std::string_view what = string_or(directive);
    if (what != "replace" && what != "delete") {
      return refuse("$patch must be replace or delete, not {}", to_text(*directive));
    }
    target.clear();
    if (what == "delete") return {};
    for (const auto& [key, value] : patch) {
      if (!value.is_null() && !is_directive(key)) set_plain(target, key, value);
    }
    return {};
  }
  if (const Json* keys = patch.if_contains(kRetainKeys)) {
    if (auto ok = retain_keys(target, patch, *keys); !ok) return ok;
  }
  const auto is_ordered = [&](std::string_view key) {
    return patch.contains(std::string(kOrder) + std::string(key));
  };
  for (const auto& [key, value] : patch) {
    const std::string_view name = key;
    if (!name.starts_with(kOrder)) continue;
    const std::string_view field = name.substr(kOrder.size());
    if (auto ok = merge_ordered(target, patch, field, value, merge_rule(type, field)); !ok) {
      return ok;
    }
  }
  for (const auto& [key, value] : patch) {
    const std::string_view name = key;
    if (name.starts_with(kDelete)) {
      if (auto ok = delete_from_set(target, name.substr(kDelete.size()), value); !ok) return ok;
    } else if (!is_directive(name) && !is_ordered(name)) {
      if (auto ok = merge_member(target, name, value, type); !ok) return ok;
    }
  }
  return {};
}

}  // namespace

Result<> apply_strategic_merge_patch(Json& target, const Json& patch, std::string_view kind) {
  if (!is_built_in_kind(kind)) {
    return fail(Reason::kUnsupportedMediaType,
                "strategic merge patch is not supported for {}: use a merge patch", kind);
  }
  if (!patch.is_object() || !target.is_object()) {
    return refuse("a strategic merge patch must be an object");
  }
  JsonObject merged = target.get_object();
  if (auto ok = merge_object(merged, patch.get_object(), kind); !ok) return ok;
  target = std::move(merged);
  return {};
}

std::optional<std::string_view> merge_key_of(std::string_view kind, std::string_view path) {
  if (!is_built_in_kind(kind)) return std::nullopt;
  MergeRule rule{.type = "", .field = "", .child = kind};
  for (const std::string_view step : split(path, '.')) {
    rule = merge_rule(rule.child, step.substr(0, step.find('[')));
  }
  if (rule.strategy != MergeStrategy::kMerge) return std::nullopt;
  return rule.key;
}

}  // namespace grapnel
