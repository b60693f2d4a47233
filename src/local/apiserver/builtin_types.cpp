// The table of built-in kinds.

#include "base/strings.h"
#include "local/apiserver/admission/webhooks.h"
#include "local/apiserver/crd.h"
#include "local/apiserver/kinds/kinds.h"
#include "local/apiserver/registry.h"

namespace grapnel::local {
namespace {

const std::vector<std::string> kStatusVerbs = {"get", "patch", "update"};
const std::vector<std::string> kStreamVerbs = {"create", "get"};
const std::vector<std::string> kProxyVerbs = {"create", "delete", "get", "patch", "update"};

Subresource status_of(std::string_view kind) {
  return {.name = "status", .kind = std::string(kind), .verbs = kStatusVerbs};
}

Subresource scale() {
  return {.name = "scale",
          .kind = "Scale",
          .group = "autoscaling",
          .version = "v1",
          .verbs = kStatusVerbs};
}

std::vector<Subresource> pod_subresources() {
  return {
      {.name = "attach", .kind = "PodAttachOptions", .verbs = kStreamVerbs},
      {.name = "binding", .kind = "Binding", .verbs = {"create"}},
      {.name = "ephemeralcontainers", .kind = "Pod", .verbs = kStatusVerbs},
      {.name = "eviction",
       .kind = "Eviction",
       .group = "policy",
       .version = "v1",
       .verbs = {"create"}},
      {.name = "exec", .kind = "PodExecOptions", .verbs = kStreamVerbs},
      {.name = "log", .kind = "Pod", .verbs = {"get"}},
      {.name = "portforward", .kind = "PodPortForwardOptions", .verbs = kStreamVerbs},
      {.name = "proxy", .kind = "PodProxyOptions", .verbs = kProxyVerbs},
      {.name = "resize", .kind = "Pod", .verbs = kStatusVerbs},
      status_of("Pod"),
  };
}

// For kinds that are kept so that manifests which hold them can be applied.
void warn_of_no_effect(const Json& object, std::vector<std::string>& warnings) {
  warnings.push_back(
      fmt::format("this cluster does not act on kind {}: the object is stored and has no effect",
                  string_or(find(object, "kind"))));
}

std::string why_not_path_segment(std::string_view name) {
  return kinds::why_not_rbac_name(name);
}

std::vector<ResourceType> core_types() {
  using namespace kinds;
  std::vector<ResourceType> types;
  types.push_back({.version = "v1",
                   .kind = "ConfigMap",
                   .plural = "configmaps",
                   .short_names = {"cm"},
                   .validate = config_map_validate,
                   .validate_update = config_map_validate_update});
  types.push_back({.version = "v1",
                   .kind = "Endpoints",
                   .plural = "endpoints",
                   .singular = "endpoints",
                   .short_names = {"ep"},
                   .create_on_update = true,
                   .set_defaults = endpoints_defaults,
                   .deprecation = "v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 "
                                  "EndpointSlice"});
  types.push_back(
      {.version = "v1",
       .kind = "Event",
       .plural = "events",
       .short_names = {"ev"},
       .create_on_update = true,
       .field_selectors = {"involvedObject.kind", "involvedObject.namespace", "involvedObject.name",
                           "involvedObject.uid", "involvedObject.apiVersion",
                           "involvedObject.resourceVersion", "involvedObject.fieldPath", "reason",
                           "reportingComponent", "source", "type"},
       .set_defaults = event_defaults,
       .validate = event_validate});
  types.push_back({.version = "v1",
                   .kind = "LimitRange",
                   .plural = "limitranges",
                   .short_names = {"limits"},
                   .create_on_update = true,
                   .set_defaults = limit_range_defaults});
  types.push_back({.version = "v1",
                   .kind = "Namespace",
                   .plural = "namespaces",
                   .short_names = {"ns"},
                   .namespaced = false,
                   .verbs = {"create", "delete", "get", "list", "patch", "update", "watch"},
                   .subresources = {{.name = "finalize", .kind = "Namespace", .verbs = {"update"}},
                                    status_of("Namespace")},
                   .status_split = true,
                   .returns_deleted = true,
                   .field_selectors = {"status.phase"},
                   .set_defaults = namespace_defaults,
                   .prepare_create = namespace_prepare_create,
                   .prepare_update = namespace_prepare_update,
                   .why_not_name = why_not_dns1123_label});
  types.push_back(
      {.version = "v1",
       .kind = "Node",
       .plural = "nodes",
       .short_names = {"no"},
       .namespaced = false,
       .subresources = {{.name = "proxy", .kind = "NodeProxyOptions", .verbs = kProxyVerbs},
                        status_of("Node")},
       .status_split = true,
       .field_selectors = {"spec.unschedulable"},
       .prepare_create = node_prepare_create});
  types.push_back({.version = "v1",
                   .kind = "PersistentVolume",
                   .plural = "persistentvolumes",
                   .short_names = {"pv"},
                   .namespaced = false,
                   .subresources = {status_of("PersistentVolume")},
                   .status_split = true,
                   .returns_deleted = true,
                   .set_defaults = volume_defaults,
                   .prepare_create = volume_prepare_create});
  types.push_back({.version = "v1",
                   .kind = "PersistentVolumeClaim",
                   .plural = "persistentvolumeclaims",
                   .short_names = {"pvc"},
                   .subresources = {status_of("PersistentVolumeClaim")},
                   .status_split = true,
                   .returns_deleted = true,
                   .set_defaults = claim_defaults,
                   .prepare_create = claim_prepare_create,
                   .validate = claim_validate});
  types.push_back(
      {.version = "v1",
       .kind = "Pod",
       .plural = "pods",
       .short_names = {"po"},
       .categories = {"all"},
       .subresources = pod_subresources(),
       .status_split = true,
       .has_generation = true,
       .returns_deleted = true,
       .graceful = true,
       .field_selectors = {"spec.nodeName", "spec.restartPolicy", "spec.schedulerName",
                           "spec.serviceAccountName", "spec.hostNetwork", "status.phase",
                           "status.podIP", "status.podIPs", "status.nominatedNodeName"},
       .set_defaults = pod_defaults,
       .prepare_create = pod_prepare_create,
       .prepare_update = pod_prepare_update,
       .validate = pod_validate,
       .validate_update = pod_validate_update,
       .warn = pod_warn});
  types.push_back({.version = "v1",
                   .kind = "ResourceQuota",
                   .plural = "resourcequotas",
                   .short_names = {"quota"},
                   .subresources = {status_of("ResourceQuota")},
                   .status_split = true,
                   .returns_deleted = true});
  types.push_back({.version = "v1",
                   .kind = "Secret",
                   .plural = "secrets",
                   .field_selectors = {"type"},
                   .set_defaults = secret_defaults,
                   .prepare_create = secret_prepare,
                   .prepare_update = secret_prepare_update,
                   .validate = secret_validate,
                   .validate_update = secret_validate_update});
  types.push_back(
      {.version = "v1",
       .kind = "Service",
       .plural = "services",
       .short_names = {"svc"},
       .categories = {"all"},
       .subresources = {{.name = "proxy", .kind = "ServiceProxyOptions", .verbs = kProxyVerbs},
                        status_of("Service")},
       .status_split = true,
       .create_on_update = true,
       .returns_deleted = true,
       .field_selectors = {"spec.clusterIP", "spec.type"},
       .set_defaults = service_defaults,
       .validate = service_validate,
       .validate_update = service_validate_update,
       .why_not_name = why_not_dns1035_label});
  types.push_back({.version = "v1",
                   .kind = "ServiceAccount",
                   .plural = "serviceaccounts",
                   .short_names = {"sa"},
                   .subresources = {{.name = "token",
                                     .kind = "TokenRequest",
                                     .group = "authentication.k8s.io",
                                     .version = "v1",
                                     .verbs = {"create"}}},
                   .returns_deleted = true});
  return types;
}

std::vector<ResourceType> workload_types() {
  using namespace kinds;
  std::vector<ResourceType> types;
  const auto add = [&types](std::string kind, std::string plural, std::string short_name,
                            void (*defaults)(JsonObject&)) -> ResourceType& {
    types.push_back({.group = "apps",
                     .version = "v1",
                     .kind = kind,
                     .plural = std::move(plural),
                     .short_names = {std::move(short_name)},
                     .categories = {"all"},
                     .subresources = {scale(), status_of(kind)},
                     .status_split = true,
                     .has_generation = true,
                     .set_defaults = defaults,
                     .validate = selector_workload_validate,
                     .validate_update = selector_workload_validate_update});
    return types.back();
  };
  ResourceType& daemons = add("DaemonSet", "daemonsets", "ds", daemon_set_defaults);
  daemons.subresources = {status_of("DaemonSet")};
  daemons.prepare_create = daemon_set_prepare_create;
  daemons.warn = warn_of_no_effect;
  add("Deployment", "deployments", "deploy", deployment_defaults);
  ResourceType& replicas = add("ReplicaSet", "replicasets", "rs", replica_set_defaults);
  replicas.field_selectors = {"status.replicas"};
  replicas.prepare_create = replica_set_prepare_create;
  ResourceType& stateful = add("StatefulSet", "statefulsets", "sts", stateful_set_defaults);
  stateful.prepare_create = stateful_set_prepare_create;
  stateful.warn = warn_of_no_effect;
  types.push_back({.group = "apps",
                   .version = "v1",
                   .kind = "ControllerRevision",
                   .plural = "controllerrevisions"});
  types.push_back({.group = "batch",
                   .version = "v1",
                   .kind = "CronJob",
                   .plural = "cronjobs",
                   .short_names = {"cj"},
                   .categories = {"all"},
                   .subresources = {status_of("CronJob")},
                   .status_split = true,
                   .has_generation = true,
                   .set_defaults = cron_job_defaults,
                   .validate = cron_job_validate});
  types.push_back({.group = "batch",
                   .version = "v1",
                   .kind = "Job",
                   .plural = "jobs",
                   .categories = {"all"},
                   .subresources = {status_of("Job")},
                   .status_split = true,
                   .has_generation = true,
                   .field_selectors = {"status.successful"},
                   .set_defaults = job_defaults,
                   .prepare_create = job_prepare_create,
                   .validate = job_validate,
                   .validate_update = job_validate_update,
                   .validate_status = job_status_validate});
  return types;
}

ResourceType review(std::string group, std::string kind, std::string plural, bool namespaced) {
  return {.group = std::move(group),
          .version = "v1",
          .kind = std::move(kind),
          .plural = std::move(plural),
          .namespaced = namespaced,
          .verbs = {"create"},
          .stored = false};
}

std::vector<ResourceType> other_types() {
  using namespace kinds;
  std::vector<ResourceType> types;
  for (const auto& [kind, plural] :
       {std::pair("MutatingWebhookConfiguration", "mutatingwebhookconfigurations"),
        std::pair("ValidatingWebhookConfiguration", "validatingwebhookconfigurations")}) {
    types.push_back({.group = "admissionregistration.k8s.io",
                     .version = "v1",
                     .kind = kind,
                     .plural = plural,
                     .categories = {"api-extensions"},
                     .namespaced = false,
                     .has_generation = true,
                     .unconditional_update = false,
                     .set_defaults = webhooks_defaults,
                     .validate = validate_webhooks,
                     .warn = warn_of_webhooks});
  }
  types.push_back({.group = "apiextensions.k8s.io",
                   .version = "v1",
                   .kind = "CustomResourceDefinition",
                   .plural = "customresourcedefinitions",
                   .short_names = {"crd", "crds"},
                   .categories = {"api-extensions"},
                   .namespaced = false,
                   .subresources = {status_of("CustomResourceDefinition")},
                   .status_split = true,
                   .has_generation = true,
                   .unconditional_update = false,
                   .warn = warn_of_definition});
  types.push_back(
      review("authentication.k8s.io", "SelfSubjectReview", "selfsubjectreviews", false));
  types.push_back(review("authentication.k8s.io", "TokenReview", "tokenreviews", false));
  const std::string authorization = "authorization.k8s.io";
  types.push_back(
      review(authorization, "LocalSubjectAccessReview", "localsubjectaccessreviews", true));
  types.push_back(
      review(authorization, "SelfSubjectAccessReview", "selfsubjectaccessreviews", false));
  types.push_back(
      review(authorization, "SelfSubjectRulesReview", "selfsubjectrulesreviews", false));
  types.push_back(review(authorization, "SubjectAccessReview", "subjectaccessreviews", false));
  types.push_back({.group = "coordination.k8s.io",
                   .version = "v1",
                   .kind = "Lease",
                   .plural = "leases",
                   .create_on_update = true,
                   .unconditional_update = false,
                   .validate = lease_validate});
  types.push_back({.group = "discovery.k8s.io",
                   .version = "v1",
                   .kind = "EndpointSlice",
                   .plural = "endpointslices",
                   .has_generation = true,
                   .set_defaults = endpoint_slice_defaults});
  types.push_back(
      {.group = "events.k8s.io",
       .version = "v1",
       .kind = "Event",
       .plural = "events",
       .short_names = {"ev"},
       .create_on_update = true,
       .field_selectors = {"regarding.kind", "regarding.namespace", "regarding.name",
                           "regarding.uid", "regarding.apiVersion", "regarding.resourceVersion",
                           "regarding.fieldPath", "reason", "reportingController", "type"},
       .storage_group = "core"});
  types.push_back({.group = "node.k8s.io",
                   .version = "v1",
                   .kind = "RuntimeClass",
                   .plural = "runtimeclasses",
                   .namespaced = false,
                   .create_on_update = true,
                   .unconditional_update = false});
  types.push_back({.group = "policy",
                   .version = "v1",
                   .kind = "PodDisruptionBudget",
                   .plural = "poddisruptionbudgets",
                   .short_names = {"pdb"},
                   .subresources = {status_of("PodDisruptionBudget")},
                   .status_split = true,
                   .has_generation = true,
                   .unconditional_update = false,
                   .warn = warn_of_no_effect});
  for (const char* kind : {"ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding"}) {
    const bool binding = std::string_view(kind).ends_with("Binding");
    types.push_back({.group = "rbac.authorization.k8s.io",
                     .version = "v1",
                     .kind = kind,
                     .plural = to_lower(kind) + "s",
                     .namespaced = !std::string_view(kind).starts_with("Cluster"),
                     .create_on_update = true,
                     .set_defaults = binding ? role_binding_defaults : nullptr,
                     .why_not_name = why_not_path_segment});
  }
  types.push_back({.group = "scheduling.k8s.io",
                   .version = "v1",
                   .kind = "PriorityClass",
                   .plural = "priorityclasses",
                   .short_names = {"pc"},
                   .namespaced = false,
                   .has_generation = true,
                   .set_defaults = priority_class_defaults});
  types.push_back({.group = "networking.k8s.io",
                   .version = "v1",
                   .kind = "Ingress",
                   .plural = "ingresses",
                   .short_names = {"ing"},
                   .subresources = {status_of("Ingress")},
                   .status_split = true,
                   .has_generation = true,
                   .warn = warn_of_no_effect});
  types.push_back({.group = "networking.k8s.io",
                   .version = "v1",
                   .kind = "NetworkPolicy",
                   .plural = "networkpolicies",
                   .short_names = {"netpol"},
                   .has_generation = true,
                   .warn = warn_of_no_effect});
  types.push_back({.group = "storage.k8s.io",
                   .version = "v1",
                   .kind = "StorageClass",
                   .plural = "storageclasses",
                   .short_names = {"sc"},
                   .namespaced = false,
                   .returns_deleted = true});
  return types;
}

}  // namespace

std::vector<TypePtr> builtin_types() {
  std::vector<TypePtr> all;
  for (std::vector<ResourceType> part : {core_types(), workload_types(), other_types()}) {
    for (ResourceType& type : part) {
      if (type.singular.empty()) type.singular = to_lower(type.kind);
      all.push_back(std::make_shared<const ResourceType>(std::move(type)));
    }
  }
  return all;
}

}  // namespace grapnel::local
