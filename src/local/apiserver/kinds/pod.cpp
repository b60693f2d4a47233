#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>

#include "base/quantity.h"
#include "base/strings.h"
#include "local/apiserver/fields.h"
#include "local/apiserver/kinds/kinds.h"

namespace grapnel::local::kinds {

void set_default(JsonObject& object, std::string_view key, Json value) {
  Json* place = object.if_contains(key);
  if (place == nullptr) {
    object.emplace(key, std::move(value));
  } else if (place->is_null() || (place->is_string() && place->get_string().empty())) {
    *place = std::move(value);  // in Go's types an empty string is no value
  }
}

JsonArray* array_at(JsonObject& object, std::string_view key) {
  Json* place = object.if_contains(key);
  return place == nullptr ? nullptr : place->if_array();
}

JsonObject* object_at(JsonObject& object, std::string_view key) {
  Json* place = object.if_contains(key);
  return place == nullptr ? nullptr : place->if_object();
}

bool is_set(const Json* value) {
  return value != nullptr && !value->is_null();
}

namespace {

void probe_defaults(JsonObject& container, std::string_view name) {
  JsonObject* probe = object_at(container, name);
  if (probe == nullptr) return;
  set_default(*probe, "timeoutSeconds", 1);
  set_default(*probe, "periodSeconds", 10);
  set_default(*probe, "successThreshold", 1);
  set_default(*probe, "failureThreshold", 3);
  if (JsonObject* http = object_at(*probe, "httpGet")) {
    set_default(*http, "path", "/");
    set_default(*http, "scheme", "HTTP");
  }
  if (JsonObject* grpc = object_at(*probe, "grpc")) set_default(*grpc, "service", "");
}

void hook_defaults(JsonObject& container, std::string_view name) {
  JsonObject* lifecycle = object_at(container, "lifecycle");
  JsonObject* hook = lifecycle == nullptr ? nullptr : object_at(*lifecycle, name);
  JsonObject* http = hook == nullptr ? nullptr : object_at(*hook, "httpGet");
  if (http == nullptr) return;
  set_default(*http, "path", "/");
  set_default(*http, "scheme", "HTTP");
}

// A tag other than latest, or a digest, is taken from the cache.
std::string_view pull_policy(std::string_view image) {
  if (image.find('@') != std::string_view::npos) return "IfNotPresent";
  const size_t slash = image.rfind('/');
  const size_t colon = image.find(':', slash == std::string_view::npos ? 0 : slash);
  if (colon == std::string_view::npos || image.substr(colon + 1) == "latest") return "Always";
  return "IfNotPresent";
}

void limits_become_requests(JsonObject& container) {
  JsonObject& resources = ensure_object(container, "resources");
  const JsonObject* limits = object_at(resources, "limits");
  if (limits == nullptr || limits->empty()) return;
  const JsonObject copy = *limits;
  JsonObject& requests = ensure_object(resources, "requests");
  for (const auto& [name, value] : copy) set_default(requests, name, value);
}

void env_defaults(JsonObject& container) {
  JsonArray* env = array_at(container, "env");
  if (env == nullptr) return;
  for (Json& variable : *env) {
    JsonObject* object = variable.if_object();
    JsonObject* from = object == nullptr ? nullptr : object_at(*object, "valueFrom");
    JsonObject* field = from == nullptr ? nullptr : object_at(*from, "fieldRef");
    if (field != nullptr) set_default(*field, "apiVersion", "v1");
  }
}

void container_defaults(JsonObject& container) {
  set_default(container, "terminationMessagePath", "/dev/termination-log");
  set_default(container, "terminationMessagePolicy", "File");
  set_default(container, "imagePullPolicy",
              Json(pull_policy(string_or(container.if_contains("image")))));
  set_default(container, "resources", JsonObject());
  if (JsonArray* ports = array_at(container, "ports")) {
    for (Json& port : *ports) {
      if (JsonObject* object = port.if_object()) set_default(*object, "protocol", "TCP");
    }
  }
  for (const char* probe : {"livenessProbe", "readinessProbe", "startupProbe"}) {
    probe_defaults(container, probe);
  }
  hook_defaults(container, "postStart");
  hook_defaults(container, "preStop");
  env_defaults(container);
}

void projected_defaults(JsonObject& projected) {
  set_default(projected, "defaultMode", 420);
  JsonArray* sources = array_at(projected, "sources");
  if (sources == nullptr) return;
  for (Json& source : *sources) {
    JsonObject* object = source.if_object();
    if (object == nullptr) continue;
    if (JsonObject* token = object_at(*object, "serviceAccountToken")) {
      set_default(*token, "expirationSeconds", 3600);
    }
    JsonObject* downward = object_at(*object, "downwardAPI");
    JsonArray* items = downward == nullptr ? nullptr : array_at(*downward, "items");
    if (items == nullptr) continue;
    for (Json& item : *items) {
      JsonObject* one = item.if_object();
      JsonObject* field = one == nullptr ? nullptr : object_at(*one, "fieldRef");
      if (field != nullptr) set_default(*field, "apiVersion", "v1");
    }
  }
}

void volume_source_defaults(JsonObject& volume) {
  if (volume.size() == 1 && volume.contains("name")) volume["emptyDir"] = JsonObject();
  for (const char* source : {"secret", "configMap", "downwardAPI"}) {
    if (JsonObject* object = object_at(volume, source)) set_default(*object, "defaultMode", 420);
  }
  if (JsonObject* projected = object_at(volume, "projected")) projected_defaults(*projected);
  if (JsonObject* host = object_at(volume, "hostPath")) set_default(*host, "type", "");
  if (JsonObject* downward = object_at(volume, "downwardAPI")) {
    if (JsonArray* items = array_at(*downward, "items")) {
      for (Json& item : *items) {
        JsonObject* one = item.if_object();
        JsonObject* field = one == nullptr ? nullptr : object_at(*one, "fieldRef");
        if (field != nullptr) set_default(*field, "apiVersion", "v1");
      }
    }
  }
  if (JsonObject* ephemeral = object_at(volume, "ephemeral")) {
    JsonObject* claim = object_at(*ephemeral, "volumeClaimTemplate");
    JsonObject* spec = claim == nullptr ? nullptr : object_at(*claim, "spec");
    if (spec != nullptr) set_default(*spec, "volumeMode", "Filesystem");
  }
}

template <class F>
void for_each_object(JsonObject& object, std::string_view key, F f) {
  JsonArray* list = array_at(object, key);
  if (list == nullptr) return;
  for (Json& element : *list) {
    if (JsonObject* one = element.if_object()) f(*one);
  }
}

// What the priority and the default-toleration admission plugins add to a pod.
void admission_defaults(JsonObject& spec) {
  set_default(spec, "priority", 0);
  set_default(spec, "preemptionPolicy", "PreemptLowerPriority");
  JsonArray* tolerations = array_at(spec, "tolerations");
  if (tolerations == nullptr) {
    spec["tolerations"] = JsonArray();
    tolerations = array_at(spec, "tolerations");
  }
  for (const char* key : {"node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"}) {
    const bool there = std::any_of(tolerations->begin(), tolerations->end(), [key](const Json& t) {
      const std::string_view of = string_or(find(t, "key"));
      const std::string_view effect = string_or(find(t, "effect"));
      return (of == key || of.empty()) && (effect == "NoExecute" || effect.empty());
    });
    if (there) continue;
    tolerations->emplace_back(JsonObject{
        {"key", key}, {"operator", "Exists"}, {"effect", "NoExecute"}, {"tolerationSeconds", 300}});
  }
}

}  // namespace

void pod_spec_defaults(JsonObject& spec) {
  for_each_object(spec, "volumes", volume_source_defaults);
  for (const char* key : {"initContainers", "containers", "ephemeralContainers"}) {
    for_each_object(spec, key, container_defaults);
  }
  set_default(spec, "restartPolicy", "Always");
  set_default(spec, "terminationGracePeriodSeconds", 30);
  set_default(spec, "dnsPolicy", "ClusterFirst");
  // The old name of the field is kept in step with the new one.
  if (const Json* name = spec.if_contains("serviceAccountName"); is_set(name)) {
    const Json copy = *name;
    spec["serviceAccount"] = copy;
  } else if (const Json* old = spec.if_contains("serviceAccount"); is_set(old)) {
    const Json copy = *old;
    spec["serviceAccountName"] = copy;
  }
  set_default(spec, "securityContext", JsonObject());
  set_default(spec, "schedulerName", "default-scheduler");
}

void pod_defaults(JsonObject& pod) {
  JsonObject& spec = ensure_object(pod, "spec");
  for (const char* key : {"initContainers", "containers"}) {
    for_each_object(spec, key, limits_become_requests);
  }
  pod_spec_defaults(spec);
  set_default(spec, "enableServiceLinks", true);
  if (bool_or(spec.if_contains("hostNetwork"))) {
    for (const char* key : {"initContainers", "containers"}) {
      for_each_object(spec, key, [](JsonObject& container) {
        for_each_object(container, "ports", [](JsonObject& port) {
          const Json number = int_or(port.if_contains("containerPort"));
          set_default(port, "hostPort", number);
        });
      });
    }
  }
}

std::string_view qos_class(const JsonObject& pod) {
  bool any = false;
  bool guaranteed = true;
  for (const char* part : {"initContainers", "containers"}) {
    const Json* list = at_in(pod, "spec", part);
    if (list == nullptr || !list->is_array()) continue;
    for (const Json& container : list->as_array()) {
      for (const char* resource : {"cpu", "memory"}) {
        const Json* request = at(container, "resources", "requests", resource);
        const Json* limit = at(container, "resources", "limits", resource);
        any = any || is_set(request) || is_set(limit);
        const auto wanted = Quantity::parse(string_or(request));
        const auto most = Quantity::parse(string_or(limit));
        if (!most || (wanted && *wanted != *most)) guaranteed = false;
      }
    }
  }
  if (!any) return "BestEffort";
  return guaranteed ? "Guaranteed" : "Burstable";
}

void pod_prepare_create(JsonObject& pod) {
  admission_defaults(ensure_object(pod, "spec"));
  JsonObject status{{"phase", "Pending"}};
  const Json* gates = find(pod["spec"], "schedulingGates");
  if (gates != nullptr && gates->is_array() && !gates->as_array().empty()) {
    status["conditions"] = JsonArray{
        JsonObject{{"type", "PodScheduled"},
                   {"status", "False"},
                   {"lastProbeTime", nullptr},
                   {"lastTransitionTime", nullptr},
                   {"reason", "SchedulingGated"},
                   {"message", "Scheduling is blocked due to non-empty scheduling gates"}}};
  }
  status["qosClass"] = qos_class(pod);
  pod["status"] = std::move(status);
}

void pod_prepare_update(JsonObject& pod, const Json& old) {
  // The class of service is fixed at creation.
  const Json* before = at(old, "status", "qosClass");
  JsonObject* status = object_at(pod, "status");
  if (before != nullptr && status != nullptr) set_default(*status, "qosClass", *before);
}

namespace {

void quantities_validate(const Json& container, const std::string& path, FieldErrors& errors) {
  for (const char* part : {"limits", "requests"}) {
    const Json* list = at(container, "resources", part);
    if (list == nullptr || !list->is_object()) continue;
    for (const auto& entry : list->as_object()) {
      const std::string where =
          fmt::format("{}.resources.{}[{}]", path, part, std::string_view(entry.key()));
      const std::string_view text = string_or(&entry.value());
      const auto quantity = Quantity::parse(text);
      if (!quantity) continue;  // the decoder says so
      if (*quantity < Quantity()) {
        errors.invalid(where, text, "must be greater than or equal to 0");
      }
      if (std::string_view(part) != "requests") continue;
      const auto limit = Quantity::parse(
          string_or(at(container, "resources", "limits", std::string_view(entry.key()))));
      if (limit && *quantity > *limit) {
        errors.invalid(fmt::format("{}.resources.requests", path), text,
                       fmt::format("must be less than or equal to {} limit of {}",
                                   std::string_view(entry.key()), limit->text()));
      }
    }
  }
}

void container_validate(const Json& container, const std::string& path,
                        const std::set<std::string>& volumes, FieldErrors& errors) {
  const std::string_view image = string_or(find(container, "image"));
  if (image.empty()) errors.required(path + ".image");
  if (!image.empty() && trim(image) != image) {
    errors.invalid(path + ".image", image, "must not have leading or trailing whitespace");
  }
  const std::string_view policy = string_or(find(container, "imagePullPolicy"));
  if (policy != "Always" && policy != "IfNotPresent" && policy != "Never") {
    errors.not_supported(path + ".imagePullPolicy", policy, {"Always", "IfNotPresent", "Never"});
  }
  if (const Json* ports = find(container, "ports"); ports != nullptr && ports->is_array()) {
    size_t i = 0;
    for (const Json& port : ports->as_array()) {
      const std::string where = fmt::format("{}.ports[{}]", path, i++);
      const int64_t number = int_or(find(port, "containerPort"));
      if (number == 0) {
        errors.required(where + ".containerPort");
      } else if (number < 1 || number > 65535) {
        errors.invalid_value(where + ".containerPort", Json(number),
                             "must be between 1 and 65535, inclusive");
      }
      const std::string_view protocol = string_or(find(port, "protocol"));
      if (protocol != "TCP" && protocol != "UDP" && protocol != "SCTP") {
        errors.not_supported(where + ".protocol", protocol, {"SCTP", "TCP", "UDP"});
      }
    }
  }
  if (const Json* env = find(container, "env"); env != nullptr && env->is_array()) {
    size_t i = 0;
    for (const Json& variable : env->as_array()) {
      const std::string where = fmt::format("{}.env[{}]", path, i++);
      if (string_or(find(variable, "name")).empty()) errors.required(where + ".name");
      if (is_set(find(variable, "valueFrom")) && !string_or(find(variable, "value")).empty()) {
        errors.invalid(where + ".valueFrom", "", "may not be specified when `value` is not empty");
      }
    }
  }
  if (const Json* mounts = find(container, "volumeMounts");
      mounts != nullptr && mounts->is_array()) {
    std::set<std::string> paths;
    size_t i = 0;
    for (const Json& mount : mounts->as_array()) {
      const std::string where = fmt::format("{}.volumeMounts[{}]", path, i++);
      const std::string name(string_or(find(mount, "name")));
      const std::string target(string_or(find(mount, "mountPath")));
      if (name.empty()) {
        errors.required(where + ".name");
      } else if (!volumes.contains(name)) {
        errors.add(Cause{.field = where + ".name",
                         .message = fmt::format("Not found: {}", quoted(name)),
                         .reason = "FieldValueNotFound"});
      }
      if (target.empty()) {
        errors.required(where + ".mountPath");
      } else if (!paths.insert(target).second) {
        errors.invalid(where + ".mountPath", target, "must be unique");
      }
    }
  }
  quantities_validate(container, path, errors);
}

void containers_validate(const Json& spec, const std::string& key, const std::string& path,
                         const std::set<std::string>& volumes, std::set<std::string>& names,
                         FieldErrors& errors) {
  const Json* list = find(spec, key);
  if (list == nullptr || !list->is_array()) return;
  size_t i = 0;
  for (const Json& container : list->as_array()) {
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
  }
}

}  // namespace

void pod_spec_validate(const Json& spec, const std::string& path, FieldErrors& errors) {
  std::set<std::string> volumes;
  if (const Json* list = find(spec, "volumes"); list != nullptr && list->is_array()) {
    size_t i = 0;
    for (const Json& volume : list->as_array()) {
      const std::string where = fmt::format("{}.volumes[{}]", path, i++);
      const std::string name(string_or(find(volume, "name")));
      if (name.empty()) {
        errors.required(where + ".name");
      } else if (const std::string why = why_not_dns1123_label(name); !why.empty()) {
        errors.invalid(where + ".name", name, why);
      } else if (!volumes.insert(name).second) {
        errors.duplicate(where + ".name", Json(name));
      }
    }
  }
  std::set<std::string> names;
  const Json* containers = find(spec, "containers");
  if (containers == nullptr || !containers->is_array() || containers->as_array().empty()) {
    errors.required(path + ".containers");
  }
  containers_validate(spec, "containers", path, volumes, names, errors);
  containers_validate(spec, "initContainers", path, volumes, names, errors);
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
  for (const char* key : {"hostname", "subdomain"}) {
    const std::string_view text = string_or(find(spec, key));
    if (text.empty()) continue;
    const std::string why = why_not_dns1123_label(text);
    if (!why.empty()) errors.invalid(fmt::format("{}.{}", path, key), text, why);
  }
  if (const Json* grace = find(spec, "terminationGracePeriodSeconds");
      is_set(grace) && int_or(grace) < 0) {
    errors.invalid_value(path + ".terminationGracePeriodSeconds", *grace,
                         "must be greater than or equal to 0");
  }
  if (const Json* deadline = find(spec, "activeDeadlineSeconds");
      is_set(deadline) && (int_or(deadline) < 1 || int_or(deadline) > INT32_MAX)) {
    errors.invalid_value(path + ".activeDeadlineSeconds", *deadline,
                         "must be between 1 and 2147483647, inclusive");
  }
}

void pod_template_validate(const Json* pod_template, const std::string& path, FieldErrors& errors) {
  const Json* spec = pod_template == nullptr ? nullptr : find(*pod_template, "spec");
  static const Json kNothing = JsonObject();
  pod_spec_validate(spec == nullptr ? kNothing : *spec, path + ".spec", errors);
}

void pod_validate(const Json& pod, FieldErrors& errors) {
  static const Json kNothing = JsonObject();
  const Json* spec = find(pod, "spec");
  pod_spec_validate(spec == nullptr ? kNothing : *spec, "spec", errors);
}

void pod_validate_update(const Json& pod, const Json& old, FieldErrors& errors) {
  const Json* now = find(pod, "spec");
  const Json* before = find(old, "spec");
  if (now == nullptr || before == nullptr) return;
  // Few fields of a running pod may change; put the old ones back and compare the rest.
  Json normal = *now;
  JsonObject* spec = normal.if_object();
  if (spec == nullptr) return;
  for (const char* key : {"activeDeadlineSeconds", "tolerations", "terminationGracePeriodSeconds",
                          "schedulingGates", "ephemeralContainers"}) {
    const Json* was = find(*before, key);
    if (was == nullptr) {
      spec->erase(key);
    } else {
      (*spec)[key] = *was;
    }
  }
  // A gated pod may still be told where it may run.
  const Json* gates = find(*before, "schedulingGates");
  if (gates != nullptr && gates->is_array() && !gates->as_array().empty()) {
    for (const char* key : {"nodeSelector", "affinity"}) {
      const Json* was = find(*before, key);
      if (was == nullptr) {
        spec->erase(key);
      } else {
        (*spec)[key] = *was;
      }
    }
  }
  for (const char* key : {"containers", "initContainers"}) {
    JsonArray* list = array_at(*spec, key);
    const Json* was = find(*before, key);
    if (list == nullptr || was == nullptr || !was->is_array()) continue;
    for (size_t i = 0; i < list->size() && i < was->as_array().size(); ++i) {
      JsonObject* container = (*list)[i].if_object();
      const Json* image = find(was->as_array()[i], "image");
      if (container != nullptr && image != nullptr) (*container)["image"] = *image;
    }
  }
  if (!equal(normal, *before)) {
    errors.forbidden("spec",
                     "pod updates may not change fields other than `spec.containers[*].image`,"
                     "`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,"
                     "`spec.tolerations` (only additions to existing tolerations),"
                     "`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was "
                     "previously negative)");
  }
}

}  // namespace grapnel::local::kinds
