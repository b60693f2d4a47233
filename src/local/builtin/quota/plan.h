// Writes into a ResourceQuota's status how much of it is used. The API server enforces it at
// admission.
#pragma once

#include <vector>

#include "document/json_view.h"
#include "kube/meta.h"
#include "local/limits/quota.h"
#include "runtime/plan.h"

namespace grapnel::local {

struct ResourceQuota {
  kube::Meta meta;
  Json object;  // metadata.name, spec and status
  bool operator==(const ResourceQuota& other) const;
};
Result<ResourceQuota> decode_resource_quota(JsonView object);

// What a pod is to a quota.
struct QuotaPod {
  kube::Meta meta;
  Json object;  // spec's resources and deadline, status.phase
  bool operator==(const QuotaPod& other) const;
};
Result<QuotaPod> decode_quota_pod(JsonView object);

struct QuotaObserved {
  const ResourceQuota& quota;
  std::vector<const QuotaPod*> pods;  // of its namespace
  Usage counted;                      // all else in it: "configmaps", "count/jobs.batch" …
};
runtime::Plan plan(const QuotaObserved& observed);

}  // namespace grapnel::local
