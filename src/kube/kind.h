// What a kind of object is called in the Kubernetes API, and the kinds that we know by name.
#pragma once

#include <string>
#include <string_view>

namespace grapnel::kube {

struct Kind {
  std::string_view group;  // "" for the core group
  std::string_view version;
  std::string_view kind;
  std::string_view plural;
  bool namespaced = true;

  // "batch/v1", "v1": what `apiVersion` says.
  std::string api_version() const {
    return group.empty() ? std::string(version) : std::string(group) + "/" + std::string(version);
  }
  // "/apis/batch/v1", "/api/v1".
  std::string api_path() const {
    return group.empty() ? "/api/" + std::string(version)
                         : "/apis/" + std::string(group) + "/" + std::string(version);
  }
  bool operator==(const Kind&) const = default;
};

namespace kinds {
inline constexpr Kind kNamespace{"", "v1", "Namespace", "namespaces", false};
inline constexpr Kind kNode{"", "v1", "Node", "nodes", false};
inline constexpr Kind kPod{"", "v1", "Pod", "pods"};
inline constexpr Kind kService{"", "v1", "Service", "services"};
inline constexpr Kind kEndpoints{"", "v1", "Endpoints", "endpoints"};
inline constexpr Kind kConfigMap{"", "v1", "ConfigMap", "configmaps"};
inline constexpr Kind kSecret{"", "v1", "Secret", "secrets"};
inline constexpr Kind kServiceAccount{"", "v1", "ServiceAccount", "serviceaccounts"};
inline constexpr Kind kPersistentVolumeClaim{"", "v1", "PersistentVolumeClaim",
                                             "persistentvolumeclaims"};
inline constexpr Kind kPersistentVolume{"", "v1", "PersistentVolume", "persistentvolumes", false};
inline constexpr Kind kResourceQuota{"", "v1", "ResourceQuota", "resourcequotas"};
inline constexpr Kind kLimitRange{"", "v1", "LimitRange", "limitranges"};
inline constexpr Kind kCoreEvent{"", "v1", "Event", "events"};
inline constexpr Kind kEvent{"events.k8s.io", "v1", "Event", "events"};
inline constexpr Kind kJob{"batch", "v1", "Job", "jobs"};
inline constexpr Kind kCronJob{"batch", "v1", "CronJob", "cronjobs"};
inline constexpr Kind kDeployment{"apps", "v1", "Deployment", "deployments"};
inline constexpr Kind kReplicaSet{"apps", "v1", "ReplicaSet", "replicasets"};
inline constexpr Kind kLease{"coordination.k8s.io", "v1", "Lease", "leases"};
inline constexpr Kind kEndpointSlice{"discovery.k8s.io", "v1", "EndpointSlice", "endpointslices"};
inline constexpr Kind kPriorityClass{"scheduling.k8s.io", "v1", "PriorityClass", "priorityclasses",
                                     false};
inline constexpr Kind kCustomResourceDefinition{
    "apiextensions.k8s.io", "v1", "CustomResourceDefinition", "customresourcedefinitions", false};
inline constexpr Kind kJobSet{"jobset.x-k8s.io", "v1alpha2", "JobSet", "jobsets"};
inline constexpr Kind kExperiment{"grapnel.dev", "v1alpha1", "Experiment", "experiments"};
}  // namespace kinds

}  // namespace grapnel::kube
