#include "document/patch.h"

namespace grapnel {
namespace {

// A member's name as a step of a JSON pointer (RFC 6901).
std::string escape(std::string_view name) {
  std::string text = "/";
  for (const char c : name) {
    if (c == '~') {
      text += "~0";
    } else if (c == '/') {
      text += "~1";
    } else {
      text += c;
    }
  }
  return text;
}

void compare(const Json& before, const Json& after, const std::string& path, JsonArray& out);

void compare_members(const JsonObject& before, const JsonObject& after, const std::string& path,
                     JsonArray& out) {
  for (const auto& [key, value] : before) {
    if (!after.contains(key)) {
      out.push_back(JsonObject{{"op", "remove"}, {"path", path + escape(key)}});
    }
  }
  for (const auto& [key, value] : after) {
    const std::string here = path + escape(key);
    if (const Json* old = before.if_contains(key)) {
      compare(*old, value, here, out);
    } else {
      out.push_back(JsonObject{{"op", "add"}, {"path", here}, {"value", value}});
    }
  }
}

void compare(const Json& before, const Json& after, const std::string& path, JsonArray& out) {
  if (before.is_object() && after.is_object()) {
    return compare_members(before.get_object(), after.get_object(), path, out);
  }
  if (before.is_array() && after.is_array() &&
      before.get_array().size() == after.get_array().size()) {
    for (size_t i = 0; i < after.get_array().size(); ++i) {
      compare(before.get_array()[i], after.get_array()[i], path + "/" + std::to_string(i), out);
    }
    return;
  }
  if (!equal(before, after)) {
    out.push_back(JsonObject{{"op", "replace"}, {"path", path}, {"value", after}});
  }
}

}  // namespace

JsonArray json_patch_between(const Json& before, const Json& after) {
  JsonArray operations;
  compare(before, after, "", operations);
  return operations;
}

}  // namespace grapnel
