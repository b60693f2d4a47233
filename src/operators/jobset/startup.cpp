#include "operators/jobset/startup.h"

#include <algorithm>

namespace grapnel::jobset {

bool starts_in_order(const api::JobSet& jobset) {
  return jobset.spec.startup_policy.order == api::StartupOrder::InOrder;
}

bool has_started(const api::ReplicatedJob& replicated, const StatusDraft& draft) {
  const auto& status = draft.of(replicated.name);
  return replicated.replicas == status.failed + status.ready + status.succeeded;
}

bool dependencies_reached(const api::JobSet& jobset, const api::ReplicatedJob& replicated,
                          const StatusDraft& draft) {
  return std::ranges::all_of(replicated.depends_on, [&](const api::Dependency& dependency) {
    const auto* other = jobset.find_replicated_job(dependency.name);
    if (other == nullptr) return false;
    if (dependency.status == api::DependencyStatus::Ready) return has_started(*other, draft);
    return other->replicas == draft.of(other->name).succeeded;
  });
}

}  // namespace grapnel::jobset
