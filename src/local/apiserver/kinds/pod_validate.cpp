// What a pod may be, and what of it may change.

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/strings.h"
#include "local/apiserver/fields.h"
#include "local/apiserver/kinds/kinds.h"

namespace grapnel::local::kinds {
namespace {

const JsonArray& list_of(const Json& object, const char* key) {
  static const JsonArray kNone;
  const Json* list = find(object, key);
  return list != nullptr && list->is_array() ? list->as_array() : kNone;
}

void validate_containers(const Json& spec, const char* key, const std::string& path,
                         const std::set<std::string>& volumes, std::set<std::string>& names,
                         FieldErrors& errors) {
  size_t i = 0;
  for (const Json& container : list_of(spec, key)) {
    const std::string where = fmt::format("{}.{}[{}]", path, key, i++);
    const std::string name(string_or(find(container, "name")));
    if (name.empty()) {
      errors.required(where + ".name");
    } else if (const std::string why = why_not_dns1123_label(name); !why.empty()) {
      errors.invalid(where + ".name", name, why);
    } else if (!names.insert(name).second) {
      errors.duplicate(where + ".name", Json(name));
    }
    container_validate(container, where, volumes, errors);
    const bool side = std::string_view(key) == "initContainers";
    if (!side && is_set(find(container, "restartPolicy"))) {
      errors.forbidden(where + ".restartPolicy", "may not be set for non-init containers");
    }
  }
}

// One source for each volume, and what that source cannot do without.
void validate_source(const Json& volume, const std::string& where, FieldErrors& errors) {
  struct Need {
    const char* source;
    const char* field;
  };
  constexpr Need kNeeds[] = {{"hostPath", "path"},
                             {"persistentVolumeClaim", "claimName"},
                             {"secret", "secretName"},
                             {"configMap", "name"},
                             {"nfs", "server"}};
  size_t sources = 0;
  if (!volume.is_object()) return;
  for (const auto& entry : volume.as_object()) {
    if (entry.key() == "name" || entry.value().is_null()) continue;
    if (++sources > 1) {
      errors.forbidden(fmt::format("{}.{}", where, std::string_view(entry.key())),
                       "may not specify more than 1 volume type");
    }
  }
  for (const Need& need : kNeeds) {
    const Json* source = find(volume, need.source);
    if (is_set(source) && string_or(find(*source, need.field)).empty()) {
      errors.required(fmt::format("{}.{}.{}", where, need.source, need.field));
    }
  }
}

// A token of the service account needs one.
void validate_projections(const Json& volume, bool has_account, const std::string& where,
                          FieldErrors& errors) {
  const Json* projected = find(volume, "projected");
  if (projected == nullptr || has_account) return;
  size_t i = 0;
  for (const Json& source : list_of(*projected, "sources")) {
    const std::string path = fmt::format("{}.projected.sources[{}]", where, i++);
    if (is_set(find(source, "serviceAccountToken"))) {
      errors.forbidden(path + ".serviceAccountToken",
                       "must not be specified when serviceAccountName is not set");
    }
  }
}

std::set<std::string> validate_volumes(const Json& spec, const std::string& path,
                                       FieldErrors& errors) {
  std::set<std::string> volumes;
  const bool has_account = !string_or(find(spec, "serviceAccountName")).empty();
  // Templates get their account later.
  const bool in_template = path != "spec";
  size_t i = 0;
  for (const Json& volume : list_of(spec, "volumes")) {
    const std::string where = fmt::format("{}.volumes[{}]", path, i++);
    const std::string name(string_or(find(volume, "name")));
    if (name.empty()) {
      errors.required(where + ".name");
    } else if (const std::string why = why_not_dns1123_label(name); !why.empty()) {
      errors.invalid(where + ".name", name, why);
    } else if (!volumes.insert(name).second) {
      errors.duplicate(where + ".name", Json(name));
    }
    validate_source(volume, where, errors);
    validate_projections(volume, has_account || in_template, where, errors);
  }
  return volumes;
}

void validate_tolerations(const Json& spec, const std::string& path, FieldErrors& errors) {
  size_t i = 0;
  for (const Json& toleration : list_of(spec, "tolerations")) {
    const std::string where = fmt::format("{}.tolerations[{}]", path, i++);
    const std::string_view key = string_or(find(toleration, "key"));
    const std::string_view op = string_or(find(toleration, "operator"));
    const std::string_view value = string_or(find(toleration, "value"));
    if (key.empty() && op != "Exists") {
      errors.invalid(where + ".operator", op,
                     "operator must be Exists when `key` is empty, which means \"match all values "
                     "and all keys\"");
    } else if (op == "Exists" && !value.empty()) {
      errors.invalid(where + ".operator", value, "value must be empty when `operator` is 'Exists'");
    } else if (op != "Exists" && op != "Equal" && !op.empty()) {
      errors.not_supported(where + ".operator", op, {"Equal", "Exists"});
    }
  }
}

void validate_gates(const Json& spec, const std::string& path, FieldErrors& errors) {
  std::set<std::string> seen;
  size_t i = 0;
  for (const Json& gate : list_of(spec, "schedulingGates")) {
    const std::string where = fmt::format("{}.schedulingGates[{}]", path, i++);
    const std::string name(string_or(find(gate, "name")));
    if (const std::string why = why_not_qualified_name(name); !why.empty()) {
      errors.invalid(where, name, why);
    }
    if (!seen.insert(name).second) errors.duplicate(where, Json(name));
  }
  if (i > 0 && !string_or(find(spec, "nodeName")).empty()) {
    errors.forbidden(path + ".nodeName",
                     "cannot be set until all schedulingGates have been cleared");
  }
}

void validate_names(const Json& spec, const std::string& path, FieldErrors& errors) {
  for (const char* key : {"hostname", "subdomain"}) {
    const std::string_view text = string_or(find(spec, key));
    const std::string why = text.empty() ? "" : why_not_dns1123_label(text);
    if (!why.empty()) errors.invalid(fmt::format("{}.{}", path, key), text, why);
  }
  for (const char* key : {"serviceAccountName", "nodeName"}) {
    const std::string_view text = string_or(find(spec, key));
    const std::string why = text.empty() ? "" : why_not_dns1123_subdomain(text);
    if (!why.empty()) errors.invalid(fmt::format("{}.{}", path, key), text, why);
  }
  labels_validate(find(spec, "nodeSelector"), path + ".nodeSelector", errors);
}

void put_back(JsonObject& spec, const Json& before, const char* key) {
  const Json* was = find(before, key);
  if (was == nullptr) {
    spec.erase(key);
  } else {
    spec[key] = *was;
  }
}

bool is_gated(const Json& spec) {
  return !list_of(spec, "schedulingGates").empty();
}

// Whether every element of one list is in the other.
bool contains_all(const JsonArray& all, const JsonArray& wanted) {
  return std::all_of(wanted.begin(), wanted.end(), [&all](const Json& one) {
    return std::any_of(all.begin(), all.end(), [&one](const Json& x) { return equal(x, one); });
  });
}

// Each of the few fields that may change has its own rule.
void validate_allowed_changes(const Json& now, const Json& before, FieldErrors& errors) {
  const Json* deadline = find(now, "activeDeadlineSeconds");
  const Json* old_deadline = find(before, "activeDeadlineSeconds");
  if (is_set(old_deadline) && !is_set(deadline)) {
    errors.invalid("spec.activeDeadlineSeconds", "",
                   "must not update from a positive integer to nil value");
  } else if (is_set(old_deadline) && int_or(deadline) > int_or(old_deadline)) {
    errors.invalid_value("spec.activeDeadlineSeconds", *deadline,
                         "must be less than or equal to previous value");
  }
  if (!contains_all(list_of(now, "tolerations"), list_of(before, "tolerations"))) {
    errors.forbidden("spec.tolerations",
                     "existing toleration can not be modified except its "
                     "tolerationSeconds");
  }
  size_t i = 0;
  for (const Json& gate : list_of(now, "schedulingGates")) {
    if (!contains_all(list_of(before, "schedulingGates"), {gate})) {
      errors.forbidden(fmt::format("spec.schedulingGates[{}].name", i),
                       "only deletion is allowed, but found new scheduling gate");
    }
    ++i;
  }
}

// The new spec with all that may change put back as it was.
Json without_allowed_changes(const Json& now, const Json& before) {
  Json normal = now;
  JsonObject& spec = normal.as_object();
  for (const char* key : {"activeDeadlineSeconds", "tolerations", "terminationGracePeriodSeconds",
                          "schedulingGates", "ephemeralContainers"}) {
    put_back(spec, before, key);
  }
  // A gated pod may still be told where it may run.
  if (is_gated(before)) {
    for (const char* key : {"nodeSelector", "affinity"}) put_back(spec, before, key);
  }
  for (const char* key : {"containers", "initContainers"}) {
    JsonArray* list = array_at(spec, key);
    const JsonArray& was = list_of(before, key);
    if (list == nullptr) continue;
    for (size_t i = 0; i < list->size() && i < was.size(); ++i) {
      JsonObject* container = (*list)[i].if_object();
      const Json* image = find(was[i], "image");
      if (container != nullptr && image != nullptr) (*container)["image"] = *image;
    }
  }
  return normal;
}

}  // namespace

void labels_validate(const Json* labels, const std::string& path, FieldErrors& errors) {
  if (labels == nullptr || !labels->is_object()) return;
  for (const auto& entry : labels->as_object()) {
    const std::string_view key(entry.key());
    if (const std::string why = why_not_qualified_name(key); !why.empty()) {
      errors.invalid(path, key, why);
    }
    const std::string_view value = string_or(&entry.value());
    if (const std::string why = why_not_label_value(value); !why.empty()) {
      errors.invalid(path, value, why);
    }
  }
}

void pod_spec_validate(const Json& spec, const std::string& path, FieldErrors& errors) {
  const std::set<std::string> volumes = validate_volumes(spec, path, errors);
  std::set<std::string> names;
  if (list_of(spec, "containers").empty()) errors.required(path + ".containers");
  validate_containers(spec, "containers", path, volumes, names, errors);
  validate_containers(spec, "initContainers", path, volumes, names, errors);
  const std::string_view restart = string_or(find(spec, "restartPolicy"));
  if (restart != "Always" && restart != "OnFailure" && restart != "Never") {
    errors.not_supported(path + ".restartPolicy", restart, {"Always", "OnFailure", "Never"});
  }
  const std::string_view dns = string_or(find(spec, "dnsPolicy"));
  if (dns != "ClusterFirst" && dns != "ClusterFirstWithHostNet" && dns != "Default" &&
      dns != "None") {
    errors.not_supported(path + ".dnsPolicy", dns,
                         {"ClusterFirstWithHostNet", "ClusterFirst", "Default", "None"});
  }
  validate_names(spec, path, errors);
  validate_tolerations(spec, path, errors);
  validate_gates(spec, path, errors);
  if (const Json* deadline = find(spec, "activeDeadlineSeconds");
      is_set(deadline) && (int_or(deadline) < 1 || int_or(deadline) > INT32_MAX)) {
    errors.invalid_value(path + ".activeDeadlineSeconds", *deadline,
                         "must be between 1 and 2147483647, inclusive");
  }
}

void pod_template_validate(const Json* pod_template, const std::string& path, FieldErrors& errors) {
  static const Json kNothing = JsonObject();
  pod_spec_validate(spec_of(pod_template == nullptr ? kNothing : *pod_template), path + ".spec",
                    errors);
}

void pod_validate(const Json& pod, FieldErrors& errors) {
  pod_spec_validate(spec_of(pod), "spec", errors);
}

void pod_validate_update(const Json& pod, const Json& old, FieldErrors& errors) {
  const Json& now = spec_of(pod);
  const Json& before = spec_of(old);
  if (!now.is_object() || !before.is_object()) return;
  for (const char* key : {"containers", "initContainers"}) {
    if (list_of(now, key).size() != list_of(before, key).size()) {
      errors.forbidden(fmt::format("spec.{}", key), "pod updates may not add or remove containers");
      return;
    }
    size_t i = 0;
    for (const Json& container : list_of(now, key)) {
      const std::string where = fmt::format("spec.{}[{}].image", key, i++);
      if (!string_or(find(container, "image")).empty()) continue;
      errors.required(where);
      errors.required(where);
    }
  }
  validate_allowed_changes(now, before, errors);
  if (!errors.empty()) return;
  if (!equal(without_allowed_changes(now, before), before)) {
    errors.forbidden("spec",
                     "pod updates may not change fields other than `spec.containers[*].image`,"
                     "`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,"
                     "`spec.tolerations` (only additions to existing tolerations),"
                     "`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was "
                     "previously negative)");
  }
}

}  // namespace grapnel::local::kinds
