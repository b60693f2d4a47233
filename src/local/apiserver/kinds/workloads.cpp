#include <fmt/format.h>

#include <map>
#include <vector>

#include "base/strings.h"
#include "document/selector.h"
#include "local/apiserver/fields.h"
#include "local/apiserver/kinds/kinds.h"

namespace grapnel::local::kinds {
void template_defaults(JsonObject& spec) {
  JsonObject& pod_template = ensure_object(spec, "template");
  pod_spec_defaults(ensure_object(pod_template, "spec"));
}

void nonnegative(const Json& spec, const char* key, const std::string& path, FieldErrors& errors) {
  const Json* value = find(spec, key);
  if (is_set(value) && int_or(value) < 0) {
    errors.invalid_value(fmt::format("{}.{}", path, key), *value,
                         "must be greater than or equal to 0");
  }
}

void immutable(const Json& now, const Json& old, const char* key, const std::string& path,
               FieldErrors& errors) {
  const Json* after = find(now, key);
  const Json* before = find(old, key);
  const bool same = is_set(after) == is_set(before) && (!is_set(after) || equal(*after, *before));
  if (!same) {
    errors.invalid_value(fmt::format("{}.{}", path, key), after == nullptr ? Json() : *after,
                         "field is immutable");
  }
}

const Json& spec_of(const Json& object) {
  static const Json kNothing = JsonObject();
  const Json* spec = find(object, "spec");
  return spec == nullptr ? kNothing : *spec;
}

namespace {

// As Go's %#v prints labels.
std::string go_labels(const Json* labels) {
  std::map<std::string, std::string> sorted;
  if (labels != nullptr && labels->is_object()) {
    for (const auto& entry : labels->as_object()) {
      sorted[in_quotes(std::string_view(entry.key()))] = in_quotes(string_or(&entry.value()));
    }
  }
  std::vector<std::string> parts;
  for (const auto& [key, value] : sorted) parts.push_back(key + ":" + value);
  return fmt::format("map[string]string{{{}}}", fmt::join(parts, ", "));
}

}  // namespace

void deployment_defaults(JsonObject& deployment) {
  JsonObject& spec = ensure_object(deployment, "spec");
  set_default(spec, "replicas", 1);
  JsonObject& strategy = ensure_object(spec, "strategy");
  set_default(strategy, "type", "RollingUpdate");
  if (string_or(strategy.if_contains("type")) == "RollingUpdate") {
    JsonObject& rolling = ensure_object(strategy, "rollingUpdate");
    set_default(rolling, "maxUnavailable", "25%");
    set_default(rolling, "maxSurge", "25%");
  }
  set_default(spec, "revisionHistoryLimit", 10);
  set_default(spec, "progressDeadlineSeconds", 600);
  template_defaults(spec);
}

void replica_set_defaults(JsonObject& replica_set) {
  JsonObject& spec = ensure_object(replica_set, "spec");
  set_default(spec, "replicas", 1);
  template_defaults(spec);
}

void stateful_set_defaults(JsonObject& stateful_set) {
  JsonObject& spec = ensure_object(stateful_set, "spec");
  set_default(spec, "podManagementPolicy", "OrderedReady");
  JsonObject& strategy = ensure_object(spec, "updateStrategy");
  if (string_or(strategy.if_contains("type")).empty()) {
    set_default(strategy, "type", "RollingUpdate");
    set_default(strategy, "rollingUpdate", JsonObject());
  }
  if (JsonObject* rolling = object_at(strategy, "rollingUpdate")) {
    set_default(*rolling, "partition", 0);
  }
  JsonObject& retention = ensure_object(spec, "persistentVolumeClaimRetentionPolicy");
  set_default(retention, "whenDeleted", "Retain");
  set_default(retention, "whenScaled", "Retain");
  set_default(spec, "replicas", 1);
  set_default(spec, "revisionHistoryLimit", 10);
  template_defaults(spec);
}

void daemon_set_defaults(JsonObject& daemon_set) {
  JsonObject& spec = ensure_object(daemon_set, "spec");
  JsonObject& strategy = ensure_object(spec, "updateStrategy");
  set_default(strategy, "type", "RollingUpdate");
  if (string_or(strategy.if_contains("type")) == "RollingUpdate") {
    JsonObject& rolling = ensure_object(strategy, "rollingUpdate");
    set_default(rolling, "maxUnavailable", 1);
    set_default(rolling, "maxSurge", 0);
  }
  set_default(spec, "revisionHistoryLimit", 10);
  template_defaults(spec);
}

void daemon_set_prepare_create(JsonObject& daemon_set) {
  JsonObject& meta = ensure_object(daemon_set, "metadata");
  ensure_object(meta, "annotations")["deprecated.daemonset.template.generation"] = "1";
  daemon_set["status"] = JsonObject{{"currentNumberScheduled", 0},
                                    {"numberMisscheduled", 0},
                                    {"desiredNumberScheduled", 0},
                                    {"numberReady", 0}};
}

void replica_set_prepare_create(JsonObject& replica_set) {
  replica_set["status"] = JsonObject{{"replicas", 0}};
}

void stateful_set_prepare_create(JsonObject& stateful_set) {
  stateful_set["status"] = JsonObject{{"replicas", 0}, {"availableReplicas", 0}};
}

void selector_workload_validate(const Json& object, FieldErrors& errors) {
  const Json& spec = spec_of(object);
  nonnegative(spec, "replicas", "spec", errors);
  const Json* selector = find(spec, "selector");
  const Json* labels = at(spec, "template", "metadata", "labels");
  bool matches = false;
  if (!is_set(selector)) {
    errors.required("spec.selector");
  } else if (const auto parsed = Selector::from_label_selector(*selector); !parsed) {
    // "matchExpressions[0].operator: why": the parser's words continue the path.
    const std::string& message = parsed.error().message;
    const size_t colon = message.find(": ");
    errors.invalid("spec.selector." + message.substr(0, colon), "", message.substr(colon + 2));
    matches = true;
  } else if (parsed->empty()) {
    errors.invalid_value("spec.selector", *selector, "empty selector is invalid for deployment");
    matches = true;
  } else {
    matches = parsed->matches(labels == nullptr ? nullptr : labels->if_object());
  }
  if (!matches) {
    errors.add(Cause{
        .field = "spec.template.metadata.labels",
        .message = fmt::format("Invalid value: {}: `selector` does not match template `labels`",
                               go_labels(labels)),
        .reason = "FieldValueInvalid"});
  }
  if (const Json* strategy = find(spec, "strategy"); is_set(strategy)) {
    const std::string_view type = string_or(find(*strategy, "type"));
    if (type != "RollingUpdate" && type != "Recreate") {
      errors.not_supported("spec.strategy", type, {"Recreate", "RollingUpdate"});
    }
  }
  pod_template_validate(find(spec, "template"), "spec.template", errors);
  const std::string_view restart = string_or(at(spec, "template", "spec", "restartPolicy"));
  if (restart != "Always") {
    errors.not_supported("spec.template.spec.restartPolicy", restart, {"Always"});
  }
}

void selector_workload_validate_update(const Json& object, const Json& old, FieldErrors& errors) {
  selector_workload_validate(object, errors);
  immutable(spec_of(object), spec_of(old), "selector", "spec", errors);
}

}  // namespace grapnel::local::kinds
