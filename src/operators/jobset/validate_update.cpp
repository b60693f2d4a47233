#include <algorithm>

#include "api/job.h"
#include "operators/jobset/status.h"
#include "operators/jobset/validate.h"

namespace grapnel::jobset {
namespace {

using api::Faults;
using api::Path;

constexpr std::string_view kImmutable = "field is immutable";

// Both sides without what may change, so that all the rest can be compared at once.
struct Mask {
  bool pod_scheduling = false;
  bool pod_count = false;
};

JsonObject* object_at(Json* value, std::string_view key) {
  if (value == nullptr || !value->is_object()) return nullptr;
  Json* member = value->as_object().if_contains(key);
  return member != nullptr && member->is_object() ? &member->as_object() : nullptr;
}

void erase_keys(JsonObject* object, std::initializer_list<std::string_view> keys) {
  if (object == nullptr) return;
  for (const auto key : keys) object->erase(key);
}

// An empty map and a missing one mean the same.
void erase_if_empty(JsonObject* parent, std::string_view key) {
  if (parent == nullptr) return;
  const Json* member = parent->if_contains(key);
  if (member != nullptr && member->is_object() && member->as_object().empty()) parent->erase(key);
}

Json masked(Json job_template, const Mask& mask) {
  JsonObject* spec = object_at(&job_template, "spec");
  if (spec == nullptr) return job_template;
  if (mask.pod_count) erase_keys(spec, {"parallelism", "completions"});
  Json* pod = spec->if_contains("template");
  if (mask.pod_scheduling && pod != nullptr) {
    erase_keys(object_at(pod, "metadata"), {"labels", "annotations"});
    if (JsonObject* pod_spec = object_at(pod, "spec")) {
      for (const auto key : api::kSchedulingFields) pod_spec->erase(key);
    }
  }
  if (pod != nullptr && pod->is_object()) erase_if_empty(&pod->as_object(), "metadata");
  return job_template;
}

bool same(const api::ReplicatedJob& a, const api::ReplicatedJob& b, const Mask& mask) {
  return a.name == b.name && a.group_name == b.group_name && a.replicas == b.replicas &&
         a.depends_on == b.depends_on &&
         equal(masked(a.job_template, mask), masked(b.job_template, mask));
}

void check_pod_count(const api::ReplicatedJob& before, const api::ReplicatedJob& after,
                     bool finished, const Path& path, Faults& faults) {
  const bool parallelism_changed = before.parallelism() != after.parallelism();
  const bool completions_changed = before.completions() != after.completions();
  if (!parallelism_changed && !completions_changed) return;
  const Path job(path, "template");
  const Path spec(job, "spec");
  if (finished) {
    return faults.forbidden(spec,
                            "Cannot mutate parallelism or completions when JobSet is in a terminal "
                            "state (Completed or Failed)");
  }
  const auto check = [&](std::string_view key, std::optional<int32_t> count, bool changed) {
    if (changed && count && *count < 1) {
      faults.invalid(Path(spec, key), std::to_string(*count), std::string(key) + " must be >= 1");
    }
  };
  check("parallelism", after.parallelism(), parallelism_changed);
  check("completions", after.completions(), completions_changed);
  if (after.parallelism() && after.completions() && after.parallelism() != after.completions()) {
    faults.invalid(Path(spec, "completions"), std::to_string(*after.completions()),
                   "completions must be equal to parallelism for Elastic Indexed Jobs");
  }
}

void check_replicated_jobs(const api::JobSet& before, const api::JobSet& after, bool strict,
                           const Path& spec, Faults& faults) {
  const Path list(spec, "replicatedJobs");
  const auto& old_jobs = before.spec.replicated_jobs;
  const auto& new_jobs = after.spec.replicated_jobs;
  if (old_jobs.size() != new_jobs.size()) {
    return faults.invalid(list, std::to_string(new_jobs.size()) + " entries", kImmutable);
  }
  for (size_t i = 0; i < new_jobs.size(); ++i) {
    const Path here(list, i);
    const Mask mask{.pod_scheduling = before.is_suspended() || after.is_suspended(),
                    .pod_count = new_jobs[i].is_indexed() && !strict};
    if (mask.pod_count && old_jobs[i].name == new_jobs[i].name) {
      check_pod_count(old_jobs[i], new_jobs[i], is_finished(before), here, faults);
    }
    if (!same(old_jobs[i], new_jobs[i], mask)) faults.invalid(here, new_jobs[i].name, kImmutable);
  }
}

bool same_claims(const api::JobSetSpec& a, const api::JobSetSpec& b) {
  return std::ranges::equal(a.volume_claim_policies, b.volume_claim_policies,
                            [](const api::VolumeClaimPolicy& x, const api::VolumeClaimPolicy& y) {
                              return x.retention_policy == y.retention_policy &&
                                     std::ranges::equal(x.templates, y.templates, equal);
                            });
}

std::vector<Cause> faults_of(const api::JobSet& before, const api::JobSet& after, bool strict) {
  Faults faults;
  const Path spec("spec");
  check_replicated_jobs(before, after, strict, spec, faults);
  const auto check = [&](std::string_view key, bool same_value, std::string_view why) {
    if (!same_value) faults.invalid(Path(spec, key), "", why);
  };
  const auto& a = before.spec;
  const auto& b = after.spec;
  check("managedBy", a.managed_by == b.managed_by, kImmutable);
  // The API server checks these by the CRD's own rules; one without CEL has only us.
  check("network", a.network == b.network, "Value is immutable");
  check("successPolicy", a.success_policy == b.success_policy, "Value is immutable");
  check("failurePolicy", a.failure_policy == b.failure_policy, "Value is immutable");
  check("startupPolicy", a.startup_policy == b.startup_policy, "Value is immutable");
  check("volumeClaimPolicies", same_claims(a, b), "Value is immutable");
  return faults.causes();
}

}  // namespace

std::vector<Cause> validate_update(const api::JobSet& before, const api::JobSet& after) {
  return faults_of(before, after, false);
}

std::vector<Cause> validate_update_strictly(const api::JobSet& before, const api::JobSet& after) {
  return faults_of(before, after, true);
}

}  // namespace grapnel::jobset
