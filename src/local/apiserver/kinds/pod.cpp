#include <fmt/format.h>

#include <algorithm>

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

// What the default-toleration admission plugin adds to a pod.
void admission_defaults(JsonObject& spec) {
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
  if (int_or(spec.if_contains("terminationGracePeriodSeconds")) < 0) {
    spec["terminationGracePeriodSeconds"] = 1;
  }
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
  // The address and the list of addresses say the same thing twice.
  if (JsonObject* status = object_at(pod, "status")) {
    for (const auto& [one, many] : {std::pair("podIP", "podIPs"), std::pair("hostIP", "hostIPs")}) {
      const std::string address(string_or(status->if_contains(one)));
      JsonArray* list = array_at(*status, many);
      if (!address.empty() && (list == nullptr || list->empty())) {
        (*status)[many] = JsonArray{JsonObject{{"ip", address}}};
      }
    }
  }
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
                   {"lastTransitionTime", pod["metadata"].as_object()["creationTimestamp"]},
                   {"reason", "SchedulingGated"},
                   {"message", "Scheduling is blocked due to non-empty scheduling gates"}}};
  }
  status["qosClass"] = qos_class(pod);
  pod["status"] = std::move(status);
}

void pod_prepare_update(JsonObject& pod, const Json& old) {
  // A client that does not know what admission added at creation must not remove it.
  JsonObject& spec = ensure_object(pod, "spec");
  for (const char* key : {"priority", "preemptionPolicy"}) {
    if (const Json* was = at(old, "spec", key)) set_default(spec, key, *was);
  }
  admission_defaults(spec);
  // The class of service is fixed at creation.
  const Json* before = at(old, "status", "qosClass");
  JsonObject* status = object_at(pod, "status");
  if (before != nullptr && status != nullptr) set_default(*status, "qosClass", *before);
}

void pod_warn(const Json& pod, std::vector<std::string>& warnings) {
  const std::string why = why_not_dns1123_label(string_or(at(pod, "metadata", "name")));
  if (why.empty()) return;
  warnings.push_back(fmt::format(
      "metadata.name: this is used in the Pod's hostname, which can result in surprising "
      "behavior; a DNS label is recommended: [{}]",
      why));
}

}  // namespace grapnel::local::kinds
