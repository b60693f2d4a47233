#include "local/apiserver/schema.h"

#include <fmt/format.h>

#include "kube/types/conform.h"
#include "kube/types/shapes.h"

namespace grapnel::local {
namespace {

bool flag(const Json& schema, std::string_view name) {
  return bool_or(find(schema, name));
}

const JsonObject* properties_of(const Json& schema) {
  const Json* properties = find(schema, "properties");
  return properties == nullptr ? nullptr : properties->if_object();
}

// additionalProperties when it is a schema.
const Json* additional_of(const Json& schema) {
  const Json* additional = find(schema, "additionalProperties");
  return additional != nullptr && additional->is_object() ? additional : nullptr;
}

bool allows_additional(const Json& schema) {
  const Json* additional = find(schema, "additionalProperties");
  return additional != nullptr && additional->is_bool() && additional->get_bool();
}

class Pruner {
 public:
  void value(const Json& schema, Json& value, const std::string& path, bool resource) {
    if (JsonObject* object = value.if_object()) {
      members(schema, *object, path, resource || flag(schema, "x-kubernetes-embedded-resource"));
    } else if (JsonArray* array = value.if_array()) {
      const Json* items = find(schema, "items");
      if (items == nullptr || !items->is_object()) return;
      size_t index = 0;
      for (Json& element : *array) {
        this->value(*items, element, fmt::format("{}[{}]", path, index++), false);
      }
    }
  }
  std::vector<std::string> pruned;

 private:
  void members(const Json& schema, JsonObject& object, const std::string& path, bool resource) {
    const JsonObject* properties = properties_of(schema);
    const Json* additional = additional_of(schema);
    const bool keep =
        flag(schema, "x-kubernetes-preserve-unknown-fields") || allows_additional(schema);
    std::vector<std::string> drop;
    for (auto& entry : object) {
      const std::string_view name(entry.key());
      const std::string where = path.empty() ? std::string(name) : fmt::format("{}.{}", path, name);
      if (resource && (name == "apiVersion" || name == "kind" || name == "metadata")) {
        if (name == "metadata") metadata(entry.value(), where);
        continue;
      }
      const Json* inner = properties == nullptr ? nullptr : properties->if_contains(name);
      if (inner == nullptr) inner = additional;
      if (inner != nullptr) {
        value(*inner, entry.value(), where, false);
      } else if (!keep) {
        pruned.push_back(where);
        drop.emplace_back(name);
      }
    }
    for (const std::string& name : drop) object.erase(name);
  }

  // The metadata of any resource has one shape.
  void metadata(Json& value, const std::string& path) {
    JsonObject* object = value.if_object();
    if (object == nullptr) return;
    const auto unknown = kube::conform(kube::shapes::meta_v1_ObjectMeta, *object);
    if (!unknown) return;  // validation says so
    for (const std::string& field : *unknown) pruned.push_back(path + "." + field);
  }
};

void defaults(const Json& schema, Json& value) {
  if (JsonObject* object = value.if_object()) {
    const JsonObject* properties = properties_of(schema);
    if (properties != nullptr) {
      for (const auto& entry : *properties) {
        const Json* standard = find(entry.value(), "default");
        Json* place = object->if_contains(entry.key());
        const bool null_drop =
            place != nullptr && place->is_null() && !flag(entry.value(), "nullable");
        if (standard != nullptr && (place == nullptr || null_drop)) {
          (*object)[entry.key()] = *standard;
          place = object->if_contains(entry.key());
        } else if (null_drop) {
          // A null that the schema does not allow counts as missing.
          object->erase(entry.key());
          place = nullptr;
        }
        if (place != nullptr) defaults(entry.value(), *place);
      }
    }
    if (const Json* additional = additional_of(schema)) {
      for (auto& entry : *object) {
        if (properties != nullptr && properties->contains(entry.key())) continue;
        defaults(*additional, entry.value());
      }
    }
  } else if (JsonArray* array = value.if_array()) {
    const Json* items = find(schema, "items");
    if (items == nullptr || !items->is_object()) return;
    for (Json& element : *array) {
      if (element.is_null() && !flag(*items, "nullable")) {
        if (const Json* standard = find(*items, "default")) element = *standard;
      }
      defaults(*items, element);
    }
  }
}

}  // namespace

std::vector<std::string> prune(const Json& schema, Json& object) {
  Pruner pruner;
  pruner.value(schema, object, "", true);
  return std::move(pruner.pruned);
}

void fill_defaults(const Json& schema, Json& object) {
  defaults(schema, object);
}

}  // namespace grapnel::local
