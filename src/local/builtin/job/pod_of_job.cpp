#include "local/builtin/job/pod_of_job.h"

#include <algorithm>

namespace grapnel::local {
namespace {

void add_index_env(JsonArray& containers) {
  for (auto& container : containers) {
    if (!container.is_object()) continue;
    auto& env = container.as_object()["env"];
    if (!env.is_array()) env = JsonArray();
    const bool set = std::ranges::any_of(env.as_array(), [](const Json& entry) {
      return string_or(find(entry, "name")) == "JOB_COMPLETION_INDEX";
    });
    if (set) continue;
    const std::string path = fmt::format("metadata.labels['{}']", kCompletionIndex);
    env.as_array().push_back(
        {{"name", "JOB_COMPLETION_INDEX"},
         {"valueFrom", JsonObject{{"fieldRef", JsonObject{{"fieldPath", path}}}}}});
  }
}

}  // namespace

std::string pod_name(const Job& job, std::optional<int64_t> index, ChildNames& names) {
  const std::string slot = index ? fmt::format("-{}", *index) : "";
  return names.next(job.meta.name() + slot, fmt::format("{}/{}", job.meta.uid.text(), slot));
}

Json pod_of_job(const Job& job, const NewPod& pod) {
  Json object = job.spec.pod_template;
  if (!object.is_object()) object = JsonObject();
  auto& root = object.as_object();
  root["apiVersion"] = "v1";
  root["kind"] = "Pod";
  auto& metadata = ensure_object(root, "metadata");
  metadata["name"] = pod.name;
  metadata["namespace"] = job.meta.ns();
  metadata["finalizers"] = JsonArray{kTrackingFinalizer};
  metadata["ownerReferences"] = JsonArray{JsonObject{{"apiVersion", "batch/v1"},
                                                     {"kind", "Job"},
                                                     {"name", job.meta.name()},
                                                     {"uid", job.meta.uid.text()},
                                                     {"controller", true},
                                                     {"blockOwnerDeletion", true}}};
  auto& labels = ensure_object(metadata, "labels");
  for (const auto* prefix : {"", "batch.kubernetes.io/"}) {
    labels[fmt::format("{}job-name", prefix)] = job.meta.name();
    labels[fmt::format("{}controller-uid", prefix)] = job.meta.uid.text();
  }
  if (!pod.index) return object;

  const std::string index = std::to_string(*pod.index);
  labels[kCompletionIndex] = index;
  auto& annotations = ensure_object(metadata, "annotations");
  annotations[kCompletionIndex] = index;
  if (pod.index_failures) annotations[kIndexFailureCount] = std::to_string(*pod.index_failures);
  auto& spec = ensure_object(root, "spec");
  spec["hostname"] = fmt::format("{}-{}", job.meta.name(), index);
  for (const auto* list : {"containers", "initContainers"}) {
    if (auto* containers = spec.if_contains(list);
        containers != nullptr && containers->is_array()) {
      add_index_env(containers->as_array());
    }
  }
  return object;
}

}  // namespace grapnel::local
