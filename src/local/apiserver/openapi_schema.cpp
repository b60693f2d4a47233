#include "local/apiserver/openapi_schema.h"

#include <fmt/format.h>

#include "base/strings.h"

namespace grapnel::local {
namespace {

using Form = kube::FieldInfo::Form;
using Shape = kube::FieldInfo::Shape;
using Merge = kube::FieldInfo::Merge;

JsonObject typed(const char* type, const char* format = "") {
  JsonObject schema{{"type", type}};
  if (*format != '\0') schema["format"] = format;
  return schema;
}

JsonObject value_schema(const kube::FieldInfo& field, JsonObject& schemas) {
  switch (field.form) {
    case Form::kString:
    case Form::kDuration:
    case Form::kQuantity:
      return typed("string");
    case Form::kBool:
      return typed("boolean");
    case Form::kInt32:
      return typed("integer", "int32");
    case Form::kInt64:
      return typed("integer", "int64");
    case Form::kDouble:
      return typed("number", "double");
    case Form::kBytes:
      return typed("string", "byte");
    case Form::kTime:
    case Form::kMicroTime:
      return typed("string", "date-time");
    case Form::kIntOrString:
      return {{"x-kubernetes-int-or-string", true}};
    case Form::kMessage:
      add_schema(*field.type, schemas);
      return {{"$ref", "#/components/schemas/" + schema_name(*field.type)}};
    default:
      return typed("object");
  }
}

JsonObject field_schema(const kube::FieldInfo& field, JsonObject& schemas) {
  JsonObject value = value_schema(field, schemas);
  if (field.shape == Shape::kOne) return value;
  if (field.shape == Shape::kMap) {
    return {{"type", "object"}, {"additionalProperties", std::move(value)}};
  }
  JsonObject list{{"type", "array"}, {"items", std::move(value)}};
  if (field.merge == Merge::kAtomic) list["x-kubernetes-list-type"] = "atomic";
  if (field.merge == Merge::kSet) list["x-kubernetes-list-type"] = "set";
  if (field.merge == Merge::kByKey) {
    list["x-kubernetes-list-type"] = "map";
    JsonArray keys;
    for (const std::string_view key : split(field.keys, ',')) keys.emplace_back(key);
    list["x-kubernetes-list-map-keys"] = std::move(keys);
  }
  return list;
}

void add_properties(const kube::TypeInfo& type, JsonObject& properties, JsonObject& schemas) {
  for (const kube::FieldInfo& field : type.fields) {
    if (field.name.empty()) {
      if (field.type != nullptr) add_properties(*field.type, properties, schemas);
    } else {
      properties[field.name] = field_schema(field, schemas);
    }
  }
}

}  // namespace

std::string schema_name(const kube::TypeInfo& type) {
  const size_t slash = type.name.find('/');
  const std::string_view package = type.name.substr(0, slash);
  const std::string_view rest = type.name.substr(slash + 1);
  if (package == "meta") return fmt::format("io.k8s.apimachinery.pkg.apis.meta.{}", rest);
  if (package == "apiextensions") {
    return fmt::format("io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.{}", rest);
  }
  return fmt::format("io.k8s.api.{}.{}", package, rest);
}

void add_schema(const kube::TypeInfo& type, JsonObject& schemas) {
  const std::string name = schema_name(type);
  if (schemas.contains(name)) return;
  schemas[name] = JsonObject{{"type", "object"}};  // before its fields: types may hold themselves
  JsonObject properties;
  add_properties(type, properties, schemas);
  schemas[name].as_object()["properties"] = std::move(properties);
}

}  // namespace grapnel::local
