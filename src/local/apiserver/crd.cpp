#include "local/apiserver/crd.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/strings.h"
#include "local/apiserver/fields.h"
#include "local/apiserver/kinds/kinds.h"
#include "local/apiserver/schema.h"

namespace grapnel::local {
namespace {

std::vector<std::string> texts(const Json* list) {
  std::vector<std::string> result;
  if (list == nullptr || !list->is_array()) return result;
  for (const Json& one : list->as_array()) result.emplace_back(string_or(&one));
  return result;
}

const JsonArray& versions_in(const Json* versions) {
  static const JsonArray kNone;
  return versions != nullptr && versions->is_array() ? versions->as_array() : kNone;
}

const JsonArray& versions_of(const Json& definition) {
  return versions_in(at(definition, "spec", "versions"));
}

std::shared_ptr<const CustomVersion> custom_version(const Json& version, const Json& spec) {
  auto result = std::make_shared<CustomVersion>();
  if (const Json* schema = at(version, "schema", "openAPIV3Schema")) result->schema = *schema;
  result->preserves_unknown = bool_or(find(spec, "preserveUnknownFields")) ||
                              bool_or(find(result->schema, "x-kubernetes-preserve-unknown-fields"));
  if (const Json* columns = find(version, "additionalPrinterColumns");
      columns != nullptr && columns->is_array()) {
    for (const Json& column : columns->as_array()) {
      result->columns.push_back({.name = std::string(string_or(find(column, "name"))),
                                 .type = std::string(string_or(find(column, "type"))),
                                 .format = std::string(string_or(find(column, "format"))),
                                 .description = std::string(string_or(find(column, "description"))),
                                 .priority = int_or(find(column, "priority")),
                                 .path = std::string(string_or(find(column, "jsonPath")))});
    }
  }
  if (const Json* scale = at(version, "subresources", "scale")) {
    result->scale_spec_path = string_or(find(*scale, "specReplicasPath"));
    result->scale_status_path = string_or(find(*scale, "statusReplicasPath"));
    result->scale_selector_path = string_or(find(*scale, "labelSelectorPath"));
  }
  return result;
}

TypePtr type_of_version(const Json& definition, const Json& version, const std::string& stored) {
  const Json& spec = *find(definition, "spec");
  ResourceType type;
  type.group = string_or(find(spec, "group"));
  type.version = string_or(find(version, "name"));
  type.kind = string_or(at(spec, "names", "kind"));
  type.plural = string_or(at(spec, "names", "plural"));
  type.singular = string_or(at(spec, "names", "singular"));
  if (type.singular.empty()) type.singular = to_lower(type.kind);
  type.short_names = texts(at(spec, "names", "shortNames"));
  type.categories = texts(at(spec, "names", "categories"));
  type.namespaced = string_or(find(spec, "scope")) == "Namespaced";
  type.has_generation = true;
  type.verbs = {"delete", "deletecollection", "get", "list", "patch", "create", "update", "watch"};
  type.unconditional_update = false;
  if (type.version != stored) type.storage_version = stored;
  const std::vector<std::string> verbs = {"get", "patch", "update"};
  if (at(version, "subresources", "status") != nullptr) {
    type.status_split = true;
    type.subresources.push_back({.name = "status", .kind = type.kind, .verbs = verbs});
  }
  if (at(version, "subresources", "scale") != nullptr) {
    type.subresources.push_back({.name = "scale",
                                 .kind = "Scale",
                                 .group = "autoscaling",
                                 .version = "v1",
                                 .verbs = verbs});
  }
  if (const Json* fields = find(version, "selectableFields");
      fields != nullptr && fields->is_array()) {
    for (const Json& field : fields->as_array()) {
      const std::string_view path = string_or(find(field, "jsonPath"));
      if (path.starts_with(".")) type.field_selectors.emplace_back(path.substr(1));
    }
  }
  type.custom = custom_version(version, spec);
  return std::make_shared<const ResourceType>(std::move(type));
}

JsonObject condition(std::string_view type, std::string_view reason, std::string_view message,
                     const std::string& time) {
  return {{"type", type},
          {"status", "True"},
          {"lastTransitionTime", time},
          {"reason", reason},
          {"message", message}};
}

}  // namespace

std::vector<TypePtr> types_of_definition(const Json& definition) {
  std::vector<TypePtr> types;
  std::string stored;
  for (const Json& version : versions_of(definition)) {
    if (bool_or(find(version, "storage"))) stored = string_or(find(version, "name"));
  }
  for (const Json& version : versions_of(definition)) {
    if (bool_or(find(version, "served"))) {
      types.push_back(type_of_version(definition, version, stored));
    }
  }
  return types;
}

void complete_definition(JsonObject& definition, Time now) {
  // A member that is added moves its neighbours: all are there before any is held on to.
  ensure_object(definition, "spec");
  JsonObject& status = ensure_object(definition, "status");
  JsonObject& spec = definition.at("spec").as_object();
  kinds::set_default(spec, "conversion", JsonObject{{"strategy", "None"}});
  JsonObject& names = ensure_object(spec, "names");
  const std::string kind(string_or(names.if_contains("kind")));
  kinds::set_default(names, "singular", Json(to_lower(kind)));
  kinds::set_default(names, "listKind", Json(kind + "List"));

  status["acceptedNames"] = names;
  if (!status.contains("conditions")) {
    const std::string time = format_time(now);
    status["conditions"] =
        JsonArray{condition("NamesAccepted", "NoConflicts", "no conflicts found", time),
                  condition("Established", "InitialNamesAccepted",
                            "the initial names have been accepted", time)};
  }
  std::vector<std::string> stored = texts(status.if_contains("storedVersions"));
  for (const Json& version : versions_in(at_in(definition, "spec", "versions"))) {
    const std::string name(string_or(find(version, "name")));
    if (bool_or(find(version, "storage")) &&
        std::find(stored.begin(), stored.end(), name) == stored.end()) {
      stored.push_back(name);
    }
  }
  JsonArray list;
  for (std::string& one : stored) list.emplace_back(std::move(one));
  status["storedVersions"] = std::move(list);
}

void validate_definition(const Json& definition, FieldErrors& errors) {
  const std::string_view name = string_or(at(definition, "metadata", "name"));
  const std::string_view group = string_or(at(definition, "spec", "group"));
  const std::string_view plural = string_or(at(definition, "spec", "names", "plural"));
  if (group.empty()) errors.required("spec.group");
  if (plural.empty()) errors.required("spec.names.plural");
  if (string_or(at(definition, "spec", "names", "kind")).empty()) {
    errors.required("spec.names.kind");
  }
  const std::string wanted = fmt::format("{}.{}", plural, group);
  if (name != wanted) {
    errors.invalid("metadata.name", name, "must be spec.names.plural+\".\"+spec.group");
  }
  const std::string_view scope = string_or(at(definition, "spec", "scope"));
  if (scope.empty()) {
    errors.required("spec.scope");
  } else if (scope != "Namespaced" && scope != "Cluster") {
    errors.not_supported("spec.scope", scope, {"Cluster", "Namespaced"});
  }
  const JsonArray& versions = versions_of(definition);
  size_t stored = 0;
  for (size_t i = 0; i < versions.size(); ++i) {
    const std::string where = fmt::format("spec.versions[{}]", i);
    if (bool_or(find(versions[i], "storage"))) ++stored;
    const std::string_view version = string_or(find(versions[i], "name"));
    if (const std::string why = why_not_dns1035_label(version); !why.empty()) {
      errors.invalid(where + ".name", version, why);
    }
    const Json* schema = at(versions[i], "schema", "openAPIV3Schema");
    if (schema == nullptr) {
      errors.required(where + ".schema.openAPIV3Schema", "schemas are required");
    } else {
      // The schema of an only version is named as if it were the definition's own.
      check_schema(*schema,
                   versions.size() == 1 ? "spec.validation.openAPIV3Schema"
                                        : where + ".schema.openAPIV3Schema",
                   errors);
    }
  }
  if (stored != 1) {
    errors.invalid_value("spec.versions", Json(JsonArray()),
                         "must have exactly one version marked as storage version");
  }
}

namespace {

bool has_rules(const Json& schema) {
  if (const JsonObject* object = schema.if_object()) {
    return std::any_of(object->begin(), object->end(), [](const auto& entry) {
      return entry.key() == "x-kubernetes-validations" || has_rules(entry.value());
    });
  }
  const JsonArray* array = schema.if_array();
  return array != nullptr && std::any_of(array->begin(), array->end(), has_rules);
}

}  // namespace

void warn_of_definition(const Json& definition, std::vector<std::string>& warnings) {
  const JsonArray& versions = versions_of(definition);
  for (size_t i = 0; i < versions.size(); ++i) {
    const Json* schema = at(versions[i], "schema", "openAPIV3Schema");
    if (schema == nullptr || !has_rules(*schema)) continue;
    warnings.push_back(fmt::format(
        "spec.versions[{}].schema: x-kubernetes-validations are not evaluated by this server", i));
  }
  if (string_or(at(definition, "spec", "conversion", "strategy")) == "Webhook") {
    warnings.emplace_back(
        "spec.conversion: webhooks are not called by this server; versions differ only in "
        "apiVersion");
  }
}

void validate_definition_update(const Json& definition, const Json& old, FieldErrors& errors) {
  validate_definition(definition, errors);
  for (const char* key : {"scope", "group"}) {
    const std::string_view now = string_or(at(definition, "spec", key));
    if (now != string_or(at(old, "spec", key))) {
      errors.invalid(fmt::format("spec.{}", key), now, "field is immutable");
    }
  }
  for (const char* key : {"kind", "plural"}) {
    const std::string_view now = string_or(at(definition, "spec", "names", key));
    if (now != string_or(at(old, "spec", "names", key))) {
      errors.invalid(fmt::format("spec.names.{}", key), now, "field is immutable");
    }
  }
}

namespace {

// The counts that /scale will read must be counts.
void validate_count(const Json& object, const std::string& path, FieldErrors& errors) {
  if (path.empty()) return;
  const Json* value = &object;
  for (const std::string_view part : split(std::string_view(path).substr(1), '.')) {
    value = value->is_object() ? find(*value, part) : nullptr;
    if (value == nullptr) return;
  }
  if (value->is_int64()) {
    if (value->get_int64() < 0) {
      errors.invalid_value(path, *value, "should be a non-negative integer");
    }
  } else if (!value->is_null()) {
    errors.invalid_value(
        path, Json(0),
        fmt::format("{} accessor error: {} is of the type {}, expected int64", path,
                    value->is_string() ? std::string(string_or(value)) : to_text(*value),
                    value->is_string() ? "string" : "float64"));
  }
}

}  // namespace

void custom_defaults(const CustomVersion& version, Json& object) {
  if (version.schema.is_object()) fill_defaults(version.schema, object);
}

void custom_validate(const CustomVersion& version, const Json& object, bool status,
                     FieldErrors& errors) {
  if (version.schema.is_object()) {
    status ? validate_status(version.schema, object, errors)
           : validate_schema(version.schema, object, errors);
  }
  if (!status) validate_count(object, version.scale_spec_path, errors);
  validate_count(object, version.scale_status_path, errors);
}

}  // namespace grapnel::local
