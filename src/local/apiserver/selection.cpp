#include "local/apiserver/selection.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>

#include "base/strings.h"
#include "document/json_view.h"

namespace grapnel::local {
namespace {

// Names under which selectors ask for a field of another name: {kind, asked, field}.
struct Alias {
  std::string_view kind;
  std::string_view asked;
  std::string_view path;
  std::string_view missing;  // what a missing field counts as
};
constexpr auto kAliases = std::to_array<Alias>({
    {"Job", "status.successful", "status.succeeded", "0"},
    {"ReplicaSet", "status.replicas", "status.replicas", "0"},
    {"Node", "spec.unschedulable", "spec.unschedulable", "false"},
    {"Pod", "spec.hostNetwork", "spec.hostNetwork", "false"},
    {"Pod", "status.podIPs", "status.podIP", ""},
    {"Event", "source", "source.component", ""},
    {"Event", "regarding.kind", "involvedObject.kind", ""},
    {"Event", "regarding.namespace", "involvedObject.namespace", ""},
    {"Event", "regarding.name", "involvedObject.name", ""},
    {"Event", "regarding.uid", "involvedObject.uid", ""},
    {"Event", "regarding.apiVersion", "involvedObject.apiVersion", ""},
    {"Event", "regarding.resourceVersion", "involvedObject.resourceVersion", ""},
    {"Event", "regarding.fieldPath", "involvedObject.fieldPath", ""},
    {"Event", "reportingController", "reportingComponent", ""},
});

std::string field_text(JsonView object, std::string_view path, std::string_view missing) {
  std::optional<JsonView> at = object;
  for (const std::string_view part : split(path, '.')) {
    at = at->find(part);
    if (!at) return std::string(missing);
  }
  if (const auto text = at->as_string()) return std::string(*text);
  if (const auto flag = at->as_bool()) return *flag ? "true" : "false";
  if (const auto number = at->as_int()) return std::to_string(*number);
  return std::string(missing);
}

Alias alias_of(const ResourceType& type, std::string_view asked) {
  for (const Alias& alias : kAliases) {
    if (alias.kind == type.kind && alias.asked == asked) return alias;
  }
  return {.kind = type.kind, .asked = asked, .path = asked, .missing = ""};
}

bool is_supported(const ResourceType& type, std::string_view field) {
  if (field == "metadata.name" || (field == "metadata.namespace" && type.namespaced)) return true;
  return std::find(type.field_selectors.begin(), type.field_selectors.end(), field) !=
         type.field_selectors.end();
}

}  // namespace

Answer<Selection> Selection::parse(const Call& call) {
  Selection selection;
  selection.type_ = call.type;
  if (call.type->namespaced && !call.info.ns.empty()) selection.prefix_ = call.info.ns + "/";
  auto labels = Selector::parse_labels(call.query("labelSelector"));
  if (!labels) return Refusal(bad_request(labels.error().message));
  auto fields = Selector::parse_fields(call.query("fieldSelector"));
  if (!fields) return Refusal(bad_request(fields.error().message));
  selection.labels_ = std::move(*labels);
  selection.fields_ = std::move(*fields);
  for (const Requirement& requirement : selection.fields_.requirements()) {
    if (!is_supported(*call.type, requirement.key)) {
      return Refusal(
          bad_request(call.type->field_selectors.empty() && !call.type->custom
                          ? fmt::format("{} is not a known field selector: only \"metadata.name\", "
                                        "\"metadata.namespace\"",
                                        in_quotes(requirement.key))
                          : "field label not supported: " + requirement.key));
    }
    if (!requirement.key.starts_with("metadata.")) selection.fields_need_body_ = true;
  }
  return selection;
}

bool Selection::matches(const Object& object) const {
  if (!labels_.empty() &&
      !labels_.matches([&object](std::string_view key) { return object.label(key); })) {
    return false;
  }
  if (fields_.empty()) return true;
  JsonParser parser;
  std::optional<JsonView> body;
  if (fields_need_body_) {
    auto parsed = parser.parse(object.json);
    if (!parsed) return false;
    body = *parsed;
  }
  std::string value;
  return fields_.matches([&](std::string_view key) -> std::optional<std::string_view> {
    if (key == "metadata.name") return object.name();
    if (key == "metadata.namespace") return object.ns();
    const Alias alias = alias_of(*type_, key);
    value = field_text(*body, alias.path, alias.missing);
    return value;
  });
}

}  // namespace grapnel::local
