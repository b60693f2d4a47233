#include "local/apiserver/json_path.h"

#include <charconv>
#include <optional>
#include <string>

#include "base/strings.h"

namespace grapnel::local {
namespace {

using Values = std::vector<const Json*>;

Values members(const Values& from, std::string_view key) {
  Values found;
  for (const Json* value : from) {
    if (key == "*") {
      if (const JsonObject* object = value->if_object()) {
        for (const auto& entry : *object) found.push_back(&entry.value());
      } else if (const JsonArray* array = value->if_array()) {
        for (const Json& element : *array) found.push_back(&element);
      }
    } else if (const Json* member = find(*value, key)) {
      found.push_back(member);
    }
  }
  return found;
}

Values elements(const Values& from, int64_t index) {
  Values found;
  for (const Json* value : from) {
    const JsonArray* array = value->if_array();
    if (array == nullptr) continue;
    const auto size = static_cast<int64_t>(array->size());
    const int64_t at = index < 0 ? size + index : index;
    if (at >= 0 && at < size) found.push_back(&(*array)[static_cast<size_t>(at)]);
  }
  return found;
}

std::string_view unquoted(std::string_view text) {
  text = trim(text);
  if (text.size() >= 2 && (text.front() == '"' || text.front() == '\'') &&
      text.back() == text.front()) {
    return text.substr(1, text.size() - 2);
  }
  return text;
}

std::string plain_text(const Json& value) {
  return value.is_string() ? std::string(string_or(&value)) : to_text(value);
}

// ?(@.type=="Ready"), also != and a bare ?(@.field).
Values filtered(const Values& from, std::string_view condition) {
  condition = trim(condition);
  if (!condition.starts_with("@")) return {};
  condition.remove_prefix(1);
  const size_t equals = condition.find("==");
  const size_t differs = condition.find("!=");
  const size_t at = std::min(equals, differs);
  const std::string_view path = trim(condition.substr(0, at));
  const std::string_view wanted =
      at == std::string_view::npos ? "" : unquoted(condition.substr(at + 2));
  Values found;
  for (const Json* value : from) {
    const JsonArray* array = value->if_array();
    if (array == nullptr) continue;
    for (const Json& element : *array) {
      const Values inner = find_by_path(element, path);
      const bool there = !inner.empty();
      bool matches = there;
      if (at != std::string_view::npos) {
        const bool same = there && plain_text(*inner.front()) == wanted;
        matches = at == equals ? same : there && !same;
      }
      if (matches) found.push_back(&element);
    }
  }
  return found;
}

// The index of the bracket that closes the one at the start, strings skipped.
size_t closing(std::string_view path) {
  char quote = 0;
  int depth = 0;
  for (size_t i = 0; i < path.size(); ++i) {
    const char c = path[i];
    if (quote != 0) {
      if (c == '\\') {
        ++i;
      } else if (c == quote) {
        quote = 0;
      }
    } else if (c == '"' || c == '\'') {
      quote = c;
    } else if (c == '[') {
      ++depth;
    } else if (c == ']' && --depth == 0) {
      return i;
    }
  }
  return std::string_view::npos;
}

Values bracketed(const Values& from, std::string_view inside) {
  inside = trim(inside);
  if (inside == "*") return members(from, "*");
  if (inside.starts_with("?(") && inside.ends_with(")")) {
    return filtered(from, inside.substr(2, inside.size() - 3));
  }
  if (inside.starts_with("'") || inside.starts_with("\"")) return members(from, unquoted(inside));
  int64_t index = 0;
  const auto [end, error] = std::from_chars(inside.data(), inside.data() + inside.size(), index);
  if (error != std::errc() || end != inside.data() + inside.size()) return {};
  return elements(from, index);
}

}  // namespace

std::vector<const Json*> find_by_path(const Json& root, std::string_view path) {
  Values values{&root};
  path = trim(path);
  if (path.starts_with("{") && path.ends_with("}")) path = path.substr(1, path.size() - 2);
  if (path.starts_with("$")) path.remove_prefix(1);
  while (!path.empty() && !values.empty()) {
    if (path.front() == '[') {
      const size_t end = closing(path);
      if (end == std::string_view::npos) return {};
      values = bracketed(values, path.substr(1, end - 1));
      path.remove_prefix(end + 1);
      continue;
    }
    if (path.front() == '.') path.remove_prefix(1);
    // A dot inside a name is written \.
    std::string key;
    size_t used = 0;
    while (used < path.size() && path[used] != '.' && path[used] != '[') {
      if (path[used] == '\\' && used + 1 < path.size()) ++used;
      key.push_back(path[used++]);
    }
    path.remove_prefix(used);
    if (!key.empty()) values = members(values, key);
  }
  return values;
}

}  // namespace grapnel::local
