#include "local/apiserver/managed/merge.h"

#include <map>
#include <set>
#include <string>
#include <vector>

namespace grapnel::local {
namespace {

bool is_nothing(const Json* value) {
  return value == nullptr || value->is_null();
}

bool is_empty(const Json* value) {
  if (is_nothing(value)) return true;
  if (const JsonObject* object = value->if_object()) return object->empty();
  if (const JsonArray* array = value->if_array()) return array->empty();
  return false;
}

void add_fields(const Json& value, const MergeType& type, FieldSet& set) {
  if (const JsonObject* object = value.if_object()) {
    if (type.atomic()) {
      set.member = true;
      return;
    }
    for (const auto& entry : *object) {
      const std::string_view name(entry.key());
      FieldSet& child = set.at("f:" + std::string(name));
      add_fields(entry.value(), type.member(name), child);
      const JsonObject* inner = entry.value().if_object();
      if (entry.value().is_null() || (inner != nullptr && inner->empty()) || !type.declares(name)) {
        child.member = true;
      }
      if (child.empty()) set.children.erase("f:" + std::string(name));
    }
  } else if (const JsonArray* array = value.if_array()) {
    if (type.list() == MergeType::List::kAtomic) {
      set.member = true;
      return;
    }
    for (const Json& element : *array) {
      FieldSet& child = set.at(type.path_element(element));
      add_fields(element, type.element(), child);
      child.member = true;
    }
  } else {
    set.member = true;
  }
}

using Keyed = std::vector<std::pair<std::string, const Json*>>;

Keyed keyed(const Json* value, const MergeType& type) {
  Keyed result;
  const JsonArray* array = value == nullptr ? nullptr : value->if_array();
  if (array == nullptr) return result;
  std::set<std::string> seen;
  for (const Json& element : *array) {
    std::string key = type.path_element(element);
    if (seen.insert(key).second) result.emplace_back(std::move(key), &element);
  }
  return result;
}

const Json* find_keyed(const Keyed& list, const std::string& key) {
  for (const auto& [name, value] : list) {
    if (name == key) return value;
  }
  return nullptr;
}

struct Sets {
  FieldSet* added;
  FieldSet* modified;
  FieldSet* removed;

  Sets at(const std::string& element) const {
    return {&added->at(element), &modified->at(element), &removed->at(element)};
  }
  // Empty nodes that were made on the way are taken out again.
  void tidy(const std::string& element) const {
    for (FieldSet* set : {added, modified, removed}) {
      const auto it = set->children.find(element);
      if (it != set->children.end() && it->second.empty()) set->children.erase(it);
    }
  }
};

// `there`: a missing side counts as empty rather than absent.
void compare_values(const Json* before, const Json* after, const MergeType& type, const Sets& sets,
                    bool there);

void compare_leaf(const Json* before, const Json* after, const Sets& sets, bool there) {
  if (before == nullptr && after == nullptr) return;
  if (before == nullptr && !there) {
    sets.added->member = true;
  } else if (after == nullptr && !there) {
    sets.removed->member = true;
  } else if (before == nullptr || after == nullptr) {
    const Json* one = before == nullptr ? after : before;
    if (!is_empty(one)) sets.modified->member = true;
  } else if (!equal(*before, *after)) {
    sets.modified->member = true;
  }
}

// `there`: the object itself is there on both sides, so that its structs count as there too.
void compare_objects(const Json* before, const Json* after, const MergeType& type, const Sets& sets,
                     bool there) {
  std::set<std::string> names;
  for (const Json* side : {before, after}) {
    const JsonObject* object = side == nullptr ? nullptr : side->if_object();
    if (object == nullptr) continue;
    for (const auto& entry : *object) names.emplace(entry.key());
  }
  for (const std::string& name : names) {
    const std::string element = "f:" + name;
    const Json* left = before == nullptr ? nullptr : find(*before, name);
    const Json* right = after == nullptr ? nullptr : find(*after, name);
    compare_values(left, right, type.member(name), sets.at(element),
                   there && type.always_there(name));
    sets.tidy(element);
  }
}

void compare_lists(const Json* before, const Json* after, const MergeType& type, const Sets& sets) {
  const Keyed left = keyed(before, type);
  const Keyed right = keyed(after, type);
  for (const auto& [key, value] : left) {
    compare_values(value, find_keyed(right, key), type.element(), sets.at(key), false);
    sets.tidy(key);
  }
  for (const auto& [key, value] : right) {
    if (find_keyed(left, key) != nullptr) continue;
    compare_values(nullptr, value, type.element(), sets.at(key), false);
    sets.tidy(key);
  }
}

void compare_values(const Json* before, const Json* after, const MergeType& type, const Sets& sets,
                    bool there) {
  const Json* sample = is_nothing(after) ? before : after;
  if (sample == nullptr) return;
  const bool object = sample->is_object();
  const bool array = sample->is_array();
  const bool mixed = !is_nothing(before) && !is_nothing(after) && before->kind() != after->kind();
  const bool leaf = (!object && !array) || mixed || (object && type.atomic()) ||
                    (array && type.list() == MergeType::List::kAtomic) ||
                    (is_empty(before) && is_empty(after));
  if (leaf) {
    compare_leaf(before, after, sets, there);
    return;
  }
  if (object) {
    compare_objects(before, after, type, sets,
                    there || (!is_nothing(before) && !is_nothing(after)));
  } else {
    compare_lists(before, after, type, sets);
  }
  if (there) return;
  if (before == nullptr) sets.added->member = true;
  if (after == nullptr) sets.removed->member = true;
}

Json merge_lists(const JsonArray& live, const Json& config, const MergeType& type) {
  const Json live_value(live);
  const Keyed left = keyed(&live_value, type);
  const Keyed right = keyed(&config, type);
  JsonArray result;
  std::set<std::string> placed;
  const auto place_right = [&](const std::string& key, const Json& value) {
    const Json* other = find_keyed(left, key);
    result.push_back(other == nullptr ? value : merge(*other, value, type.element()));
    placed.insert(key);
  };
  // What only the live object has stays where it is; the rest takes the order of the config.
  size_t next = 0;
  for (const auto& [key, value] : left) {
    if (find_keyed(right, key) == nullptr) {
      result.push_back(*value);
      continue;
    }
    while (next < right.size() && !placed.contains(key)) {
      place_right(right[next].first, *right[next].second);
      ++next;
    }
  }
  for (; next < right.size(); ++next) place_right(right[next].first, *right[next].second);
  return result;
}

}  // namespace

std::string repeated_element(const Json& value, const MergeType& type, const std::string& path) {
  if (const JsonObject* object = value.if_object()) {
    if (type.atomic()) return "";
    for (const auto& entry : *object) {
      const std::string_view name(entry.key());
      std::string found =
          repeated_element(entry.value(), type.member(name), path + "." + std::string(name));
      if (!found.empty()) return found;
    }
  } else if (const JsonArray* array = value.if_array()) {
    if (type.list() == MergeType::List::kAtomic) return "";
    std::set<std::string> seen;
    for (const Json& element : *array) {
      const std::string key = type.path_element(element);
      if (!seen.insert(key).second) return path + ": duplicate entries for key " + key.substr(2);
      std::string found = repeated_element(element, type.element(), path);
      if (!found.empty()) return found;
    }
  }
  return "";
}

FieldSet fields_of(const Json& object, const MergeType& type) {
  FieldSet set;
  add_fields(object, type, set);
  return set;
}

Difference compare(const Json& before, const Json& after, const MergeType& type) {
  Difference difference;
  const Sets sets{&difference.added, &difference.modified, &difference.removed};
  compare_objects(&before, &after, type, sets, true);
  return difference;
}

Json merge(const Json& live, const Json& config, const MergeType& type) {
  const JsonObject* left = live.if_object();
  const JsonObject* right = config.if_object();
  if (left != nullptr && right != nullptr) {
    if (type.atomic()) return config;
    JsonObject result = *left;
    for (const auto& entry : *right) {
      Json* place = result.if_contains(entry.key());
      if (place == nullptr) {
        result[entry.key()] = entry.value();
      } else {
        *place = merge(*place, entry.value(), type.member(entry.key()));
      }
    }
    return result;
  }
  if (live.is_array() && config.is_array() && type.list() != MergeType::List::kAtomic) {
    return merge_lists(live.as_array(), config, type);
  }
  return config;
}

namespace {

// True when the value itself is to go.
bool drop(Json& value, const MergeType& type, const FieldSet& last, const FieldSet* managed) {
  if (last.member && managed == nullptr) return true;
  static const FieldSet kNone;
  const FieldSet& owned = managed == nullptr ? kNone : *managed;
  if (JsonObject* object = value.if_object()) {
    if (object->empty() || type.atomic()) return false;
    for (const auto& [element, inner] : last.children) {
      if (!element.starts_with("f:")) continue;
      const std::string name = element.substr(2);
      Json* member = object->if_contains(name);
      if (member != nullptr && drop(*member, type.member(name), inner, owned.find(element))) {
        object->erase(name);
      }
    }
    return object->empty() && (managed == nullptr || !managed->member);
  }
  if (JsonArray* array = value.if_array()) {
    if (array->empty() || type.list() == MergeType::List::kAtomic) return false;
    JsonArray kept;
    for (Json& element : *array) {
      const std::string key = type.path_element(element);
      const FieldSet* inner = last.find(key);
      if (inner != nullptr && drop(element, type.element(), *inner, owned.find(key))) continue;
      kept.push_back(std::move(element));
    }
    *array = std::move(kept);
    return array->empty() && (managed == nullptr || !managed->member);
  }
  return false;
}

}  // namespace

void drop_unowned(Json& object, const MergeType& type, const FieldSet& last,
                  const FieldSet& managed) {
  (void)drop(object, type, last, &managed);
}

}  // namespace grapnel::local
