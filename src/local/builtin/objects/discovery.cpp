#include "local/builtin/objects/discovery.h"

#include <algorithm>
#include <array>

#include "base/interner.h"

namespace grapnel::local {
namespace {

bool can(const Json& resource, std::string_view verb) {
  const Json* verbs = find(resource, "verbs");
  return verbs != nullptr && verbs->is_array() &&
         std::ranges::any_of(verbs->as_array(),
                             [&](const Json& one) { return string_or(&one) == verb; });
}

const JsonArray& list_of(const Json& value, std::string_view key) {
  static const JsonArray kNone;
  const Json* list = find(value, key);
  return list != nullptr && list->is_array() ? list->as_array() : kNone;
}

}  // namespace

std::vector<kube::Kind> kinds_of_discovery(const Json& document) {
  std::vector<kube::Kind> kinds;
  for (const Json& group : list_of(document, "items")) {
    const auto name = keep_text(string_or(at(group, "metadata", "name")));
    for (const Json& version : list_of(group, "versions")) {
      for (const Json& resource : list_of(version, "resources")) {
        const kube::Kind kind{.group = name,
                              .version = keep_text(string_or(find(version, "version"))),
                              .kind = keep_text(string_or(at(resource, "responseKind", "kind"))),
                              .plural = keep_text(string_or(find(resource, "resource"))),
                              .namespaced = string_or(find(resource, "scope")) == "Namespaced"};
        constexpr std::array kVerbs{"list", "watch", "delete"};
        const bool known = std::ranges::any_of(kinds, [&](const kube::Kind& other) {
          return other.group == kind.group && other.plural == kind.plural;
        });
        if (!known && std::ranges::all_of(kVerbs, [&](auto verb) { return can(resource, verb); })) {
          kinds.push_back(kind);
        }
      }
    }
  }
  return kinds;
}

}  // namespace grapnel::local
