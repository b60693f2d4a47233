#include "document/merge_keys.h"

#include <algorithm>
#include <array>

namespace grapnel {
namespace {

using enum MergeStrategy;

// From the patchStrategy and patchMergeKey of the published API types (v1.33). Lists that are not
// here (tolerations, args, a ServiceAccount's imagePullSecrets …) are replaced whole.
constexpr MergeRule kRules[] = {
    {"ObjectMeta", "ownerReferences", "", kMerge, "uid"},
    {"ObjectMeta", "finalizers", "", kMerge, ""},

    {"Container", "ports", "", kMerge, "containerPort"},
    {"Container", "env", "", kMerge, "name"},
    {"Container", "volumeMounts", "", kMerge, "mountPath"},
    {"Container", "volumeDevices", "", kMerge, "devicePath"},
    {"Volume", "ephemeral", "EphemeralVolumeSource"},
    {"EphemeralVolumeSource", "volumeClaimTemplate", "PersistentVolumeClaimTemplate"},
    {"PodSpec", "volumes", "Volume", kMerge, "name"},
    {"PodSpec", "initContainers", "Container", kMerge, "name"},
    {"PodSpec", "containers", "Container", kMerge, "name"},
    {"PodSpec", "ephemeralContainers", "Container", kMerge, "name"},
    {"PodSpec", "imagePullSecrets", "", kMerge, "name"},
    {"PodSpec", "hostAliases", "", kMerge, "ip"},
    {"PodSpec", "topologySpreadConstraints", "", kMerge, "topologyKey"},
    {"PodSpec", "schedulingGates", "", kMerge, "name"},
    {"PodSpec", "resourceClaims", "", kMerge, "name"},
    {"PodStatus", "conditions", "", kMerge, "type"},
    {"PodStatus", "hostIPs", "", kMerge, "ip"},
    {"PodStatus", "podIPs", "", kMerge, "ip"},
    {"PodStatus", "resourceClaimStatuses", "", kMerge, "name"},
    {"PodTemplateSpec", "spec", "PodSpec"},

    {"Pod", "spec", "PodSpec"},
    {"Pod", "status", "PodStatus"},
    {"PodTemplate", "template", "PodTemplateSpec"},
    {"Job", "spec", "JobSpec"},
    {"Job", "status", "Conditions"},
    {"JobSpec", "template", "PodTemplateSpec"},
    {"JobTemplateSpec", "spec", "JobSpec"},
    {"CronJob", "spec", "CronJobSpec"},
    {"CronJobSpec", "jobTemplate", "JobTemplateSpec"},
    {"Deployment", "spec", "WithTemplate"},
    {"Deployment", "status", "Conditions"},
    {"ReplicaSet", "spec", "WithTemplate"},
    {"ReplicaSet", "status", "Conditions"},
    {"ReplicationController", "spec", "WithTemplate"},
    {"ReplicationController", "status", "Conditions"},
    {"StatefulSet", "spec", "WithTemplate"},
    {"StatefulSet", "status", "Conditions"},
    {"DaemonSet", "spec", "WithTemplate"},
    {"DaemonSet", "status", "Conditions"},
    {"Service", "spec", "ServiceSpec"},
    {"ServiceSpec", "ports", "", kMerge, "port"},
    {"Service", "status", "Conditions"},
    {"ServiceAccount", "secrets", "", kMerge, "name"},
    {"Node", "spec", "NodeSpec"},
    {"NodeSpec", "podCIDRs", "", kMerge, ""},
    {"Node", "status", "NodeStatus"},
    {"NodeStatus", "conditions", "", kMerge, "type"},
    {"NodeStatus", "addresses", "", kMerge, "type"},
    {"Namespace", "status", "Conditions"},
    {"PersistentVolumeClaim", "status", "Conditions"},
    {"HorizontalPodAutoscaler", "status", "Conditions"},
    {"PodDisruptionBudget", "spec", "PodDisruptionBudgetSpec"},
    {"PodDisruptionBudgetSpec", "selector", "", kReplace},
    {"PodDisruptionBudget", "status", "Conditions"},
    {"CSINode", "spec", "CSINodeSpec"},
    {"CSINodeSpec", "drivers", "", kMerge, "name"},
    {"MutatingWebhookConfiguration", "webhooks", "Webhook", kMerge, "name"},
    {"ValidatingWebhookConfiguration", "webhooks", "Webhook", kMerge, "name"},
    {"Webhook", "matchConditions", "", kMerge, "name"},

    // Shared by the types that have nothing else: a pod template, a list of conditions.
    {"WithTemplate", "template", "PodTemplateSpec"},
    {"Conditions", "conditions", "", kMerge, "type"},
};

constexpr auto kKinds = std::to_array<std::string_view>({
    "APIService",
    "CSIDriver",
    "CSINode",
    "CertificateSigningRequest",
    "ClusterRole",
    "ClusterRoleBinding",
    "ConfigMap",
    "ControllerRevision",
    "CronJob",
    "CustomResourceDefinition",
    "DaemonSet",
    "Deployment",
    "EndpointSlice",
    "Endpoints",
    "Event",
    "HorizontalPodAutoscaler",
    "Ingress",
    "IngressClass",
    "Job",
    "Lease",
    "LimitRange",
    "MutatingWebhookConfiguration",
    "Namespace",
    "NetworkPolicy",
    "Node",
    "PersistentVolume",
    "PersistentVolumeClaim",
    "Pod",
    "PodDisruptionBudget",
    "PodTemplate",
    "PriorityClass",
    "ReplicaSet",
    "ReplicationController",
    "ResourceQuota",
    "Role",
    "RoleBinding",
    "RuntimeClass",
    "Secret",
    "Service",
    "ServiceAccount",
    "StatefulSet",
    "StorageClass",
    "ValidatingWebhookConfiguration",
    "VolumeAttachment",
});

// Types other than kinds that carry metadata.
constexpr std::string_view kWithMetadata[] = {"PodTemplateSpec", "JobTemplateSpec",
                                              "PersistentVolumeClaimTemplate"};

}  // namespace

bool is_built_in_kind(std::string_view kind) {
  return std::ranges::binary_search(kKinds, kind);
}

MergeRule merge_rule(std::string_view type, std::string_view field) {
  if (field == "metadata" &&
      (is_built_in_kind(type) || std::ranges::count(kWithMetadata, type) > 0)) {
    return {type, field, "ObjectMeta"};
  }
  for (const MergeRule& rule : kRules) {
    if (rule.type == type && rule.field == field) return rule;
  }
  return {type, field, ""};
}

}  // namespace grapnel
