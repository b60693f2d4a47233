#include "api/schema.h"

#include "base/strings.h"

namespace grapnel::api {
namespace {

template <class T>
void set_if(JsonObject& schema, std::string_view key, const std::optional<T>& value) {
  if (value) schema[key] = *value;
}

JsonArray strings(const std::vector<std::string_view>& texts) {
  JsonArray array;
  for (const auto text : texts) array.emplace_back(text);
  return array;
}

JsonArray columns_of(const ResourceInfo& info) {
  JsonArray columns;
  for (const auto& column : info.columns) {
    JsonObject entry{{"name", column.name}, {"type", column.type}, {"jsonPath", column.json_path}};
    if (column.priority != 0) entry["priority"] = column.priority;
    columns.push_back(std::move(entry));
  }
  return columns;
}

// "string", "list of objects", "All or Any": the type as a reader wants it.
std::string type_words(const JsonObject& schema) {
  if (const auto* names = schema.if_contains("enum")) {
    std::string words;
    for (const auto& name : names->as_array()) {
      words += fmt::format("{}`{}`", words.empty() ? "" : ", ", std::string_view(name.as_string()));
    }
    return words;
  }
  const std::string_view type = schema.at("type").as_string();
  if (type == "array") return "list of " + type_words(schema.at("items").as_object());
  if (schema.contains("additionalProperties")) return "map";
  if (schema.contains("x-kubernetes-preserve-unknown-fields"))
    return "object, carried through whole";
  return std::string(type);
}

std::string limits_words(const JsonObject& schema) {
  std::string words;
  const auto say = [&](std::string_view key, std::string_view text) {
    if (const auto* value = schema.if_contains(key)) {
      words += fmt::format(" {} {}.", text, to_text(*value));
    }
  };
  say("default", "Default");
  say("minimum", "At least");
  say("maximum", "At most");
  say("maxLength", "Longest");
  say("maxItems", "At most, in number,");
  say("pattern", "Pattern");
  return words;
}

void write_fields(std::string& page, const JsonObject& schema, const std::string& prefix) {
  const auto* properties = schema.if_contains("properties");
  if (properties == nullptr) return;
  for (const auto& [key, value] : properties->as_object()) {
    const JsonObject* field = &value.as_object();
    const std::string path = prefix + "." + std::string(key);
    const auto* doc = field->if_contains("description");
    page +=
        fmt::format("| `{}` | {} | {}{} |\n", path, type_words(*field),
                    doc != nullptr ? std::string_view(doc->as_string()) : "", limits_words(*field));
    std::string below = path;
    while (field->contains("items")) {
      field = &field->at("items").as_object();
      below += "[]";
    }
    write_fields(page, *field, below);
  }
}

}  // namespace

void annotate_schema(JsonObject& schema, const FieldInfo& info) {
  if (info.shape != nullptr) {
    for (auto& [key, value] : info.shape()) schema[key] = std::move(value);
  }
  if (!info.doc.empty()) schema["description"] = info.doc;
  set_if(schema, "minimum", info.minimum);
  set_if(schema, "maximum", info.maximum);
  set_if(schema, "minLength", info.min_length);
  set_if(schema, "maxLength", info.max_length);
  set_if(schema, "minItems", info.min_items);
  set_if(schema, "maxItems", info.max_items);
  if (!info.pattern.empty()) schema["pattern"] = info.pattern;
  if (!info.list_key.empty()) {
    schema["x-kubernetes-list-type"] = "map";
    schema["x-kubernetes-list-map-keys"] = JsonArray{info.list_key};
  } else if (info.is_set) {
    schema["x-kubernetes-list-type"] = "set";
  }
  JsonArray rules;
  if (const auto* before = schema.if_contains("x-kubernetes-validations"))
    rules = before->as_array();
  for (const auto& rule : info.rules) {
    rules.push_back({{"rule", rule.expression}, {"message", rule.message}});
  }
  if (!rules.empty()) schema["x-kubernetes-validations"] = std::move(rules);
}

Json make_crd(const ResourceInfo& info, JsonObject spec, JsonObject status) {
  const auto& kind = info.kind;
  JsonObject schema{
      {"type", "object"},
      {"required", JsonArray{"spec"}},
      {"properties", JsonObject{{"apiVersion", JsonObject{{"type", "string"}}},
                                {"kind", JsonObject{{"type", "string"}}},
                                {"metadata", JsonObject{{"type", "object"}}},
                                {"spec", std::move(spec)},
                                {"status", std::move(status)}}},
  };
  JsonObject subresources{{"status", JsonObject()}};
  if (info.scale) {
    JsonObject scale{{"specReplicasPath", info.scale->spec_replicas},
                     {"statusReplicasPath", info.scale->status_replicas}};
    if (!info.scale->label_selector.empty()) {
      scale["labelSelectorPath"] = info.scale->label_selector;
    }
    subresources["scale"] = std::move(scale);
  }
  JsonObject version{{"name", kind.version},
                     {"served", true},
                     {"storage", true},
                     {"schema", JsonObject{{"openAPIV3Schema", std::move(schema)}}},
                     {"subresources", std::move(subresources)}};
  if (!info.columns.empty()) version["additionalPrinterColumns"] = columns_of(info);
  JsonObject names{{"kind", kind.kind},
                   {"listKind", std::string(kind.kind) + "List"},
                   {"plural", kind.plural},
                   {"singular", info.singular}};
  if (!info.short_names.empty()) names["shortNames"] = strings(info.short_names);
  if (!info.categories.empty()) names["categories"] = strings(info.categories);
  return JsonObject{
      {"apiVersion", "apiextensions.k8s.io/v1"},
      {"kind", "CustomResourceDefinition"},
      {"metadata", JsonObject{{"name", fmt::format("{}.{}", kind.plural, kind.group)}}},
      {"spec", JsonObject{{"group", kind.group},
                          {"names", std::move(names)},
                          {"scope", kind.namespaced ? "Namespaced" : "Cluster"},
                          {"versions", JsonArray{std::move(version)}}}},
  };
}

std::string make_reference_page(const ResourceInfo& info, const JsonObject& spec,
                                const JsonObject& status) {
  std::string page = fmt::format(
      "<!-- Generated by `grapnel reference`; do not edit. -->\n# {}\n\n", info.kind.kind);
  page += fmt::format("`apiVersion: {}`, `kind: {}`\n\n", info.kind.api_version(), info.kind.kind);
  page += "| field | type | meaning |\n|---|---|---|\n";
  write_fields(page, spec, "spec");
  write_fields(page, status, "status");
  return page;
}

}  // namespace grapnel::api
