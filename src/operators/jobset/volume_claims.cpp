#include "operators/jobset/volume_claims.h"

#include <algorithm>

#include "operators/common/object.h"
#include "operators/jobset/names.h"

namespace grapnel::jobset {
namespace {

std::string_view name_of_template(const Json& claim) {
  return string_or(at(claim, "metadata", "name"));
}

bool any_mounts(const Json* containers, std::string_view volume) {
  if (containers == nullptr || !containers->is_array()) return false;
  return std::ranges::any_of(containers->as_array(), [&](const Json& container) {
    const Json* mounts = at(container, "volumeMounts");
    return mounts != nullptr && mounts->is_array() &&
           std::ranges::any_of(mounts->as_array(), [&](const Json& mount) {
             return string_or(at(mount, "name")) == volume;
           });
  });
}

Json claim_from(const api::JobSet& jobset, const api::VolumeClaimPolicy& policy,
                const Json& claim_template) {
  JsonObject metadata{{"name", claim_name(jobset.meta.name(), name_of_template(claim_template))},
                      {"namespace", jobset.meta.ns()}};
  JsonObject labels;
  if (const Json* given = at(claim_template, "metadata", "labels"); given && given->is_object()) {
    labels = given->as_object();
  }
  labels[keys::kJobSetName] = jobset.meta.name();
  metadata["labels"] = std::move(labels);
  if (const Json* given = at(claim_template, "metadata", "annotations")) {
    metadata["annotations"] = *given;
  }
  if (policy.retention_policy.when_deleted == api::VolumeRetention::Delete) {
    metadata["ownerReferences"] = operators::owned_by(jobset);
  }
  const Json* spec = at(claim_template, "spec");
  return JsonObject{{"apiVersion", kube::kinds::kPersistentVolumeClaim.api_version()},
                    {"kind", kube::kinds::kPersistentVolumeClaim.kind},
                    {"metadata", std::move(metadata)},
                    {"spec", spec != nullptr ? *spec : Json(JsonObject())}};
}

}  // namespace

bool mounts_volume(const Json& pod_spec, std::string_view volume) {
  return any_mounts(find(pod_spec, "containers"), volume) ||
         any_mounts(find(pod_spec, "initContainers"), volume);
}

std::vector<Json> volumes_for(const api::JobSet& jobset, const JsonObject& pod_spec) {
  std::vector<Json> volumes;
  if (jobset.spec.volume_claim_policies.empty()) return volumes;
  const Json spec = pod_spec;
  for (const auto& policy : jobset.spec.volume_claim_policies) {
    for (const Json& claim : policy.templates) {
      const auto name = name_of_template(claim);
      if (!mounts_volume(spec, name)) continue;
      const JsonObject source{{"claimName", claim_name(jobset.meta.name(), name)}};
      volumes.push_back(JsonObject{{"name", name}, {"persistentVolumeClaim", source}});
    }
  }
  return volumes;
}

std::vector<runtime::Create> claims_of(const api::JobSet& jobset) {
  std::vector<runtime::Create> claims;
  for (const auto& policy : jobset.spec.volume_claim_policies) {
    for (const Json& claim : policy.templates) {
      claims.push_back({.kind = &kube::kinds::kPersistentVolumeClaim,
                        .object = claim_from(jobset, policy, claim)});
    }
  }
  return claims;
}

}  // namespace grapnel::jobset
