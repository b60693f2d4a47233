#include "local/apiserver/managed/field_set.h"

#include <fmt/format.h>

#include <vector>

namespace grapnel::local {
namespace {

constexpr int kMostDepth = 100;

FieldSet parse(const Json& fields, int depth) {
  FieldSet set;
  const JsonObject* object = fields.if_object();
  if (object == nullptr || depth > kMostDepth) return set;
  for (const auto& entry : *object) {
    if (entry.key() == ".") {
      set.member = true;
      continue;
    }
    FieldSet child = parse(entry.value(), depth + 1);
    // A leaf is written {}: the path itself.
    if (child.empty()) child.member = true;
    set.children[std::string(entry.key())] = std::move(child);
  }
  return set;
}

std::string shown(const std::string& element) {
  const std::string_view text(element);
  if (text.starts_with("f:")) return "." + std::string(text.substr(2));
  if (text.starts_with("v:")) return fmt::format("[={}]", text.substr(2));
  if (text.starts_with("i:")) return fmt::format("[{}]", text.substr(2));
  const auto keys = text.starts_with("k:") ? parse_json(text.substr(2)) : Result<Json>(Json());
  if (!keys || !keys->is_object()) return fmt::format("[{}]", text);
  std::vector<std::string> parts;
  for (const auto& entry : keys->as_object()) {
    parts.push_back(fmt::format("{}={}", std::string_view(entry.key()), to_text(entry.value())));
  }
  return fmt::format("[{}]", fmt::join(parts, ","));
}

}  // namespace

FieldSet FieldSet::from_json(const Json& fields) {
  FieldSet set = parse(fields, 0);
  set.member = false;  // an object as a whole is nobody's
  return set;
}

Json FieldSet::to_json() const {
  JsonObject object;
  if (member && !children.empty()) object["."] = JsonObject();
  for (const auto& [element, child] : children) object[element] = child.to_json();
  return object;
}

FieldSet& FieldSet::at(std::string_view element) {
  const auto it = children.find(element);
  if (it != children.end()) return it->second;
  return children.emplace(std::string(element), FieldSet()).first->second;
}

const FieldSet* FieldSet::find(std::string_view element) const {
  const auto it = children.find(element);
  return it == children.end() ? nullptr : &it->second;
}

void FieldSet::add(const FieldSet& other) {
  member = member || other.member;
  for (const auto& [element, child] : other.children) at(element).add(child);
}

void FieldSet::remove(const FieldSet& other) {
  if (other.member) member = false;
  for (const auto& [element, child] : other.children) {
    const auto it = children.find(element);
    if (it == children.end()) continue;
    it->second.remove(child);
    if (it->second.empty()) children.erase(it);
  }
}

void FieldSet::remove_below(const FieldSet& other) {
  if (other.member) {
    member = false;
    children.clear();
    return;
  }
  for (const auto& [element, child] : other.children) {
    const auto it = children.find(element);
    if (it == children.end()) continue;
    it->second.remove_below(child);
    if (it->second.empty()) children.erase(it);
  }
}

FieldSet FieldSet::intersection(const FieldSet& other) const {
  FieldSet result;
  result.member = member && other.member;
  for (const auto& [element, child] : children) {
    const FieldSet* match = other.find(element);
    if (match == nullptr) continue;
    FieldSet both = child.intersection(*match);
    if (!both.empty()) result.children.emplace(element, std::move(both));
  }
  return result;
}

void FieldSet::walk(const std::string& prefix,
                    const std::function<void(const std::string&)>& f) const {
  // As Kubernetes lists them: the members of a level, then what is below them.
  for (const auto& [element, child] : children) {
    if (child.member) f(prefix + shown(element));
  }
  for (const auto& [element, child] : children) child.walk(prefix + shown(element), f);
}

void FieldSet::for_each(const std::function<void(const std::string& path)>& f) const {
  walk("", f);
}

}  // namespace grapnel::local
