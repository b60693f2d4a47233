// What a structural schema is, and what it is not.

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "document/pattern.h"
#include "local/apiserver/schema.h"

namespace grapnel::local {
namespace {

constexpr auto kTypes =
    std::to_array<std::string_view>({"array", "boolean", "integer", "number", "object", "string"});

class Structure {
 public:
  explicit Structure(FieldErrors& errors) : errors_(errors) {}

  void node(const Json& schema, const std::string& path, bool root) {
    const Json* items = find(schema, "items");
    const bool has_items = items != nullptr && items->is_object();
    if (!has_items && string_or(find(schema, "type")) == "array") {
      errors_.required(path + ".items", "must be specified");
    }
    check_type(schema, path, root);
    check_pattern(schema, path);
    check_default(schema, path);
    if (const Json* properties = find(schema, "properties");
        properties != nullptr && properties->is_object()) {
      for (const auto& entry : properties->as_object()) {
        node(entry.value(), fmt::format("{}.properties[{}]", path, std::string_view(entry.key())),
             false);
      }
    }
    if (const Json* additional = find(schema, "additionalProperties");
        additional != nullptr && additional->is_object()) {
      node(*additional, path + ".additionalProperties", false);
    }
    if (has_items) node(*items, path + ".items", false);
  }

 private:
  void check_type(const Json& schema, const std::string& path, bool root) {
    const std::string_view type = string_or(find(schema, "type"));
    if (type.empty()) {
      const bool free = bool_or(find(schema, "x-kubernetes-int-or-string")) ||
                        bool_or(find(schema, "x-kubernetes-preserve-unknown-fields"));
      if (free && !root) return;
      errors_.required(path + ".type", root ? "must not be empty at the root"
                                            : "must not be empty for specified object fields");
      return;
    }
    if (std::find(kTypes.begin(), kTypes.end(), type) == kTypes.end()) {
      errors_.not_supported(path + ".type", type, {kTypes.begin(), kTypes.end()});
    } else if (root && type != "object") {
      errors_.invalid(path + ".type", type, "must be object at the root");
    }
  }

  void check_pattern(const Json& schema, const std::string& path) {
    const std::string_view pattern = string_or(find(schema, "pattern"));
    if (!pattern.empty() && !Pattern::compile(pattern)) {
      errors_.invalid(path + ".pattern", pattern, "must be a valid regular expression");
    }
  }

  void check_default(const Json& schema, const std::string& path) {
    const Json* standard = find(schema, "default");
    if (standard == nullptr) return;
    FieldErrors found;
    validate_schema(schema, *standard, found);
    if (!found.empty()) {
      errors_.invalid_value(path + ".default", *standard, found.list().front().message);
    }
  }

  FieldErrors& errors_;
};

}  // namespace

void check_schema(const Json& schema, const std::string& path, FieldErrors& errors) {
  Structure(errors).node(schema, path, true);
}

}  // namespace grapnel::local
