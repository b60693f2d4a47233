// What a description says to others: the CRD with its OpenAPI v3 schema, and a reference page.
#pragma once

#include <string>
#include <type_traits>

#include "api/codec.h"
#include "api/describe.h"

namespace grapnel::api {

// Adds what FieldInfo says (description, limits, list type, CEL rules) to a schema.
void annotate_schema(JsonObject& schema, const FieldInfo& info);

template <class T>
JsonObject schema_of() {
  if constexpr (Described<T>) {
    JsonObject properties;
    JsonArray required;
    const T defaults{};
    for_each_field<T>([&]<class Member>(const Field<T, Member>& f) {
      JsonObject schema = schema_of<Member>();
      annotate_schema(schema, f.info());
      if (f.info().is_defaulted) schema["default"] = encode(defaults.*f.member());
      properties[f.info().name] = std::move(schema);
      if (f.info().is_required) required.emplace_back(f.info().name);
    });
    JsonObject schema{{"type", "object"}, {"properties", std::move(properties)}};
    if (!required.empty()) schema["required"] = std::move(required);
    FieldInfo whole{.doc = Description<T>::kDoc};
    if constexpr (requires { Description<T>::rules(); }) whole.rules = Description<T>::rules();
    annotate_schema(schema, whole);
    return schema;
  } else if constexpr (detail::is_optional<T>) {
    return schema_of<typename T::value_type>();
  } else if constexpr (detail::is_vector<T>) {
    return {{"type", "array"}, {"items", schema_of<typename T::value_type>()}};
  } else if constexpr (detail::is_map<T>) {
    return {{"type", "object"}, {"additionalProperties", schema_of<typename T::mapped_type>()}};
  } else if constexpr (std::is_same_v<T, Json>) {
    return {{"type", "object"}, {"x-kubernetes-preserve-unknown-fields", true}};
  } else if constexpr (std::is_same_v<T, bool>) {
    return {{"type", "boolean"}};
  } else if constexpr (std::is_integral_v<T>) {
    return {{"type", "integer"}, {"format", sizeof(T) > 4 ? "int64" : "int32"}};
  } else if constexpr (std::is_floating_point_v<T>) {
    return {{"type", "number"}};
  } else if constexpr (std::is_same_v<T, Time>) {
    return {{"type", "string"}, {"format", "date-time"}};
  } else if constexpr (std::is_enum_v<T>) {
    JsonArray names;
    for (const auto name : detail::enumerator_names<T>()) names.emplace_back(name);
    return {{"type", "string"}, {"enum", std::move(names)}};
  } else {
    return {{"type", "string"}};
  }
}

// The CustomResourceDefinition around the schemas of spec and status.
Json make_crd(const ResourceInfo& info, JsonObject spec, JsonObject status);
// A page in Markdown from the same schemas.
std::string make_reference_page(const ResourceInfo& info, const JsonObject& spec,
                                const JsonObject& status);

template <class T>
Json crd_of() {
  return make_crd(Resource<T>::info(), schema_of<decltype(T::spec)>(),
                  schema_of<decltype(T::status)>());
}

template <class T>
std::string reference_page_of() {
  return make_reference_page(Resource<T>::info(), schema_of<decltype(T::spec)>(),
                             schema_of<decltype(T::status)>());
}

}  // namespace grapnel::api
