#include "operators/jobset/deletion.h"

#include <algorithm>
#include <set>
#include <unordered_set>

#include "operators/jobset/names.h"

namespace grapnel::jobset {
namespace {

using operators::ref_to;

constexpr std::string_view kForegroundDeletion = "foregroundDeletion";
constexpr Duration kPatience = minutes(5);
// A node is reported as lost some time after it was, and by no event of its pods.
constexpr Duration kBetweenLooks = seconds(30);

// Pods may take their grace period and must then be given time to be seen as gone.
Duration patience(const api::JobSet& jobset) {
  const auto asked = parse_go_duration(jobset.meta.annotations.get(keys::kStuckDeletionTimeout));
  if (asked && *asked > Duration::zero()) return *asked;
  int64_t grace = 30;
  for (const auto& replicated : jobset.spec.replicated_jobs) {
    if (const Json* pod = replicated.pod_spec()) {
      grace = std::max(grace, int_or(find(*pod, "terminationGracePeriodSeconds"), 30));
    }
  }
  return kPatience + seconds(std::min<int64_t>(grace, 24 * 3600));
}

runtime::Patch without_waiting(const ChildJob& job) {
  JsonArray finalizers;
  for (const Interned& finalizer : job.meta.finalizers) {
    if (finalizer.view() != kForegroundDeletion) finalizers.emplace_back(finalizer.view());
  }
  return {.target = ref_to(job),
          .body = JsonObject{{"metadata", JsonObject{{"finalizers", std::move(finalizers)}}}},
          .subresource = "",
          .if_version = job.meta.resource_version};
}

bool is_held_by_pods(const ChildJob& job) {
  const auto& finalizers = job.meta.finalizers;
  return job.meta.deleted &&
         std::ranges::find(finalizers, kForegroundDeletion, &Interned::view) != finalizers.end();
}

bool is_lost(const Observed& o, const api::Pod& pod) {
  if (pod.node.empty() || !o.find_node) return false;
  const api::Node* node = o.find_node(pod.node);
  return node == nullptr || !node->ready;
}

// Says when to act on something in deletion since then; acts once the time has come.
void when_stuck(Time since, Duration patience, Time now, runtime::Plan& plan,
                runtime::Write write) {
  const Time due = since + patience;
  if (now < due) {
    plan.look_again_in(due - now);
  } else {
    plan.add(std::move(write));
  }
}

}  // namespace

bool blocks(const api::JobSet& jobset) {
  const auto& policy = jobset.spec.failure_policy;
  return policy && policy->restart_strategy == api::RestartStrategy::BlockingRecreate;
}

runtime::Plan delete_jobs(const Observed& o, const std::vector<const ChildJob*>& jobs) {
  using enum runtime::Delete::Propagation;
  const auto propagation = o.strict || blocks(o.jobset) ? kForeground : kBackground;
  runtime::Plan plan;
  for (const ChildJob* job : jobs) {
    if (job->meta.is_being_deleted()) continue;
    plan.add(runtime::Delete{
        .target = ref_to(*job), .propagation = propagation, .grace_seconds = std::nullopt});
  }
  return plan;
}

runtime::Plan hold_names_of_running_pods(const Observed& o, Time now, Children& children) {
  runtime::Plan plan;
  if (o.pods.empty() || o.strict) return plan;
  std::unordered_set<std::string> present;
  for (const ChildJob* job : o.jobs) present.insert(job->meta.uid.text());
  const Duration patient = patience(o.jobset);
  for (const api::Pod* pod : o.pods) {
    const auto* owner = pod->meta.controller();
    if (owner == nullptr || pod->node.empty() || pod->is_finished() ||
        present.contains(owner->uid.text())) {
      continue;
    }
    if (pod->meta.deleted) {
      const Time due = *pod->meta.deleted + patient;
      if (now >= due) continue;
      plan.look_again_in(due - now);
    }
    children.names.insert(owner->name);
  }
  return plan;
}

runtime::Plan release_stuck(const Observed& o, const std::vector<const ChildJob*>& jobs, Time now) {
  runtime::Plan plan;
  if (jobs.empty() || o.strict) return plan;
  const Duration patient = patience(o.jobset);
  if (!blocks(o.jobset)) {
    for (const ChildJob* job : jobs) {
      if (!is_held_by_pods(*job)) continue;
      when_stuck(*job->meta.deleted, patient, now, plan, without_waiting(*job));
    }
    return plan;
  }
  std::set<std::string> held;
  for (const ChildJob* job : jobs) held.insert(job->meta.uid.text());
  for (const api::Pod* pod : o.pods) {
    const auto* owner = pod->meta.controller();
    if (owner == nullptr || !held.contains(owner->uid.text())) continue;
    if (!pod->meta.deleted || pod->node.empty()) continue;
    if (now >= *pod->meta.deleted + patient && !is_lost(o, *pod)) {
      plan.look_again_in(std::min(patient, kBetweenLooks));
      continue;
    }
    when_stuck(*pod->meta.deleted, patient, now, plan,
               runtime::Delete{.target = ref_to(*pod), .grace_seconds = 0});
  }
  return plan;
}

}  // namespace grapnel::jobset
