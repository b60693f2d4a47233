#include "local/apiserver/registry.h"

#include <algorithm>
#include <optional>

namespace grapnel::local {
namespace {

std::string path_of(std::string_view group, std::string_view version, std::string_view plural) {
  std::string path(group);
  path.append("/").append(version).append("/").append(plural);
  return path;
}

// {stability, major, minor}: 3 for v1, 2 for v1beta1, 1 for v1alpha1.
struct Rank {
  int stability;
  int major;
  int minor;
};

int take_number(std::string_view& text) {
  int number = 0;
  size_t digits = 0;
  while (digits < text.size() && digits < 6 && text[digits] >= '0' && text[digits] <= '9') {
    number = number * 10 + (text[digits] - '0');
    ++digits;
  }
  text.remove_prefix(digits);
  return digits == 0 ? -1 : number;
}

std::optional<Rank> rank_of(std::string_view version) {
  if (!version.starts_with("v")) return std::nullopt;
  version.remove_prefix(1);
  const int major = take_number(version);
  if (major < 0) return std::nullopt;
  if (version.empty()) return Rank{3, major, 0};
  int stability = 0;
  if (version.starts_with("beta")) stability = 2;
  if (version.starts_with("alpha")) stability = 1;
  if (stability == 0) return std::nullopt;
  version.remove_prefix(stability == 2 ? 4 : 5);
  const int minor = take_number(version);
  if (minor < 0 || !version.empty()) return std::nullopt;
  return Rank{stability, major, minor};
}

}  // namespace

std::string ResourceType::list_kind() const {
  return kind + "List";
}

std::string ResourceType::collection() const {
  const std::string& home = storage_group.empty() ? group : storage_group;
  if (home.empty() || home == "core") return plural;
  return plural + "." + home;
}

const Subresource* ResourceType::subresource(std::string_view name) const {
  for (const Subresource& one : subresources) {
    if (one.name == name) return &one;
  }
  return nullptr;
}

bool ResourceType::allows(std::string_view verb) const {
  return verbs.empty() || std::find(verbs.begin(), verbs.end(), verb) != verbs.end();
}

bool version_before(std::string_view a, std::string_view b) {
  const auto left = rank_of(a);
  const auto right = rank_of(b);
  if (left.has_value() != right.has_value()) return left.has_value();
  if (!left) return a < b;
  if (left->stability != right->stability) return left->stability > right->stability;
  if (left->major != right->major) return left->major > right->major;
  return left->minor > right->minor;
}

Registry::Registry() : builtin_(builtin_types()) {
  rebuild();
}

void Registry::rebuild() {
  ++revision_;
  types_ = builtin_;
  for (const auto& [definition, types] : custom_) {
    types_.insert(types_.end(), types.begin(), types.end());
  }
  by_path_.clear();
  for (const TypePtr& type : types_) {
    by_path_[path_of(type->group, type->version, type->plural)] = type;
  }
}

void Registry::set_custom(const std::string& definition, std::vector<TypePtr> types) {
  if (types.empty()) {
    custom_.erase(definition);
  } else {
    custom_[definition] = std::move(types);
  }
  rebuild();
}

TypePtr Registry::find(std::string_view group, std::string_view version,
                       std::string_view plural) const {
  const auto it = by_path_.find(path_of(group, version, plural));
  return it == by_path_.end() ? nullptr : it->second;
}

TypePtr Registry::find_kind(std::string_view group, std::string_view version,
                            std::string_view kind) const {
  for (const TypePtr& type : types_) {
    if (type->group == group && type->version == version && type->kind == kind) return type;
  }
  return nullptr;
}

TypePtr Registry::find_resource(std::string_view group, std::string_view plural) const {
  for (const TypePtr& type : types_) {
    if (type->group == group && type->plural == plural) return type;
  }
  return nullptr;
}

std::vector<TypePtr> Registry::of(std::string_view group, std::string_view version) const {
  std::vector<TypePtr> result;
  for (const TypePtr& type : types_) {
    if (type->group == group && type->version == version) result.push_back(type);
  }
  return result;
}

bool Registry::is_builtin_group(std::string_view group) const {
  return std::any_of(builtin_.begin(), builtin_.end(),
                     [group](const TypePtr& type) { return type->group == group; });
}

bool Registry::has_group(std::string_view group) const {
  return std::any_of(types_.begin(), types_.end(),
                     [group](const TypePtr& type) { return type->group == group; });
}

std::vector<Registry::Group> Registry::groups() const {
  std::vector<Group> groups;
  for (const TypePtr& type : types_) {
    auto it = std::find_if(groups.begin(), groups.end(),
                           [&type](const Group& g) { return g.name == type->group; });
    if (it == groups.end()) it = groups.insert(groups.end(), Group{.name = type->group});
    if (std::find(it->versions.begin(), it->versions.end(), type->version) == it->versions.end()) {
      it->versions.push_back(type->version);
    }
  }
  for (Group& group : groups) {
    std::sort(group.versions.begin(), group.versions.end(), version_before);
  }
  return groups;
}

}  // namespace grapnel::local
