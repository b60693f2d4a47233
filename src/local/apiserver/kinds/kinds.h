// Defaults, preparation and validation of the built-in kinds, as Kubernetes does them for the
// fields that these workloads use. The table in builtin_types.cpp says which function serves which
// kind.
#pragma once

#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "document/json.h"
#include "local/apiserver/status.h"

namespace grapnel::local::kinds {

// Helpers for all of them.
// Sets the member where there is none (or null).
void set_default(JsonObject& object, std::string_view key, Json value);
JsonArray* array_at(JsonObject& object, std::string_view key);  // nullptr: none, or not an array
// The elements of a list that are objects.
template <class F>
void for_each_object(JsonObject& object, std::string_view key, F f) {
  JsonArray* list = array_at(object, key);
  if (list == nullptr) return;
  for (Json& element : *list) {
    if (JsonObject* one = element.if_object()) f(*one);
  }
}
JsonObject* object_at(JsonObject& object, std::string_view key);
bool is_set(const Json* value);            // there and not null
const Json& spec_of(const Json& object);   // {} when there is none
void template_defaults(JsonObject& spec);  // of the pods that a spec describes
void nonnegative(const Json& spec, const char* key, const std::string& path, FieldErrors& errors);
void immutable(const Json& now, const Json& old, const char* key, const std::string& path,
               FieldErrors& errors);

// pod.cpp
void pod_defaults(JsonObject& pod);
void pod_prepare_create(JsonObject& pod);
void pod_prepare_update(JsonObject& pod, const Json& old);
void pod_warn(const Json& pod, std::vector<std::string>& warnings);
// pod_validate.cpp, container_validate.cpp
void pod_validate(const Json& pod, FieldErrors& errors);
void pod_validate_update(const Json& pod, const Json& old, FieldErrors& errors);
// Of a pod's spec, also inside a template.
void pod_spec_defaults(JsonObject& spec);
void pod_spec_validate(const Json& spec, const std::string& path, FieldErrors& errors);
void container_validate(const Json& container, const std::string& path,
                        const std::set<std::string>& volumes, FieldErrors& errors);
void labels_validate(const Json* labels, const std::string& path, FieldErrors& errors);
void pod_template_validate(const Json* pod_template, const std::string& path, FieldErrors& errors);
std::string_view qos_class(const JsonObject& pod);

// workloads.cpp, jobs.cpp
void job_defaults(JsonObject& job);
void job_prepare_create(JsonObject& job);
void job_validate(const Json& job, FieldErrors& errors);
void job_validate_update(const Json& job, const Json& old, FieldErrors& errors);
void cron_job_defaults(JsonObject& cron_job);
void cron_job_validate(const Json& cron_job, FieldErrors& errors);
void deployment_defaults(JsonObject& deployment);
void replica_set_defaults(JsonObject& replica_set);
void stateful_set_defaults(JsonObject& stateful_set);
void daemon_set_defaults(JsonObject& daemon_set);
void daemon_set_prepare_create(JsonObject& daemon_set);
void replica_set_prepare_create(JsonObject& replica_set);
void stateful_set_prepare_create(JsonObject& stateful_set);
void job_status_validate(const Json& job, FieldErrors& errors);
void selector_workload_validate(const Json& object, FieldErrors& errors);
void selector_workload_validate_update(const Json& object, const Json& old, FieldErrors& errors);

// core.cpp, service.cpp
void namespace_defaults(JsonObject& ns);
void namespace_prepare_create(JsonObject& ns);
void namespace_prepare_update(JsonObject& ns, const Json& old);
void node_prepare_create(JsonObject& node);
void service_defaults(JsonObject& service);
void service_validate(const Json& service, FieldErrors& errors);
void service_validate_update(const Json& service, const Json& old, FieldErrors& errors);
void config_map_validate(const Json& config_map, FieldErrors& errors);
void config_map_validate_update(const Json& now, const Json& old, FieldErrors& errors);
void secret_defaults(JsonObject& secret);
void secret_prepare(JsonObject& secret);
void secret_prepare_update(JsonObject& secret, const Json& old);
void secret_validate(const Json& secret, FieldErrors& errors);
void secret_validate_update(const Json& now, const Json& old, FieldErrors& errors);
void claim_defaults(JsonObject& claim);
void claim_prepare_create(JsonObject& claim);
void claim_validate(const Json& claim, FieldErrors& errors);
void limit_range_defaults(JsonObject& range);
void event_defaults(JsonObject& event);
void volume_defaults(JsonObject& volume);
void volume_prepare_create(JsonObject& volume);
void event_validate(const Json& event, FieldErrors& errors);
void lease_validate(const Json& lease, FieldErrors& errors);
void endpoint_slice_defaults(JsonObject& slice);
void endpoints_defaults(JsonObject& endpoints);
void priority_class_defaults(JsonObject& priority_class);
void role_binding_defaults(JsonObject& binding);
void webhooks_defaults(JsonObject& configuration);
std::string why_not_rbac_name(std::string_view name);

}  // namespace grapnel::local::kinds
