#include "operators/jobset/plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>

#include "operators/common/object.h"
#include "operators/common/refusal.h"
#include "operators/jobset/children.h"
#include "operators/jobset/deletion.h"
#include "operators/jobset/failure_policy.h"
#include "operators/jobset/gang.h"
#include "operators/jobset/job_builder.h"
#include "operators/jobset/names.h"
#include "operators/jobset/network.h"
#include "operators/jobset/startup.h"
#include "operators/jobset/status.h"
#include "operators/jobset/success_policy.h"
#include "operators/jobset/suspend.h"
#include "operators/jobset/ttl.h"
#include "operators/jobset/validate.h"
#include "operators/jobset/volume_claims.h"

namespace grapnel::jobset {
namespace {

using operators::is_creation_of;
using operators::ref_to;
using operators::refused_name;
using operators::text_of;
using runtime::Plan;

// More wait for the next plan, so that what happens meanwhile does not wait for thousands of Jobs.
constexpr size_t kCreatesAtOnce = 5000;

bool is_managed_by_another(const api::JobSet& jobset) {
  return jobset.spec.managed_by && *jobset.spec.managed_by != kControllerName;
}

// A queue may hold tens of thousands of JobSets suspended: they cost nothing until they are let go.
bool waits_for_resume(const Observed& o) {
  const api::JobSet& jobset = o.jobset;
  return jobset.is_suspended() && !o.strict &&
         jobset.meta.annotations.get(keys::kCreateSuspendedJobs) != "true";
}

bool was_tampered_with(const std::vector<const ChildJob*>& jobs) {
  return std::ranges::any_of(jobs, [](const ChildJob* job) { return !job->place; });
}

bool has_restarted(const api::JobSet& jobset) {
  const auto restarted = [](const api::ReplicatedJobStatus& status) {
    return std::ranges::any_of(status.job_restarts, [](int32_t times) { return times > 0; });
  };
  return jobset.status.restarts.value_or(0) > 0 ||
         std::ranges::any_of(jobset.status.replicated_jobs, restarted);
}

bool waits_for_deletion(const api::JobSet& jobset, const Children& children) {
  return blocks(jobset) && !children.previous.empty();
}

void add_network_and_claims(const Observed& o, Plan& plan) {
  if (o.jobset.spec.network.enable_dns_hostnames && o.service == nullptr) {
    plan.add(headless_service(o.jobset));
  }
  for (auto& claim : claims_of(o.jobset)) {
    const auto name = claim.object.key().name;
    if (std::ranges::find(o.claims, name) == o.claims.end()) plan.add(std::move(claim));
  }
}

void add_scaling(const Observed& o, const Children& children, Plan& plan) {
  if (o.strict) return;
  std::unordered_map<std::string_view, const api::ReplicatedJob*> by_name;
  for (const auto& replicated : o.jobset.spec.replicated_jobs) {
    by_name[replicated.name] = &replicated;
  }
  for (const ChildJob* job : children.active) {
    const auto* replicated = by_name.at(job->place->replicated_job);
    if (auto patch = scale_job(*job, *replicated)) plan.add(std::move(*patch));
  }
}

// Adds Jobs that are missing, as long as there is room for more. They are made when they are sent,
// from a copy of the JobSet that the plan keeps.
class MissingJobs {
 public:
  MissingJobs(const Observed& o, const Children& children, size_t room, Plan& plan)
      : jobset_(o.jobset), strict_(o.strict), children_(children), room_(room), plan_(plan) {}

  void add(size_t replicated) {
    const api::ReplicatedJob& spec = jobset_.spec.replicated_jobs[replicated];
    std::shared_ptr<const JobBuilder> builder;
    for (int32_t index = 0; index < spec.replicas && room_ > 0; ++index) {
      std::string job = job_name(jobset_.meta.name(), spec.name, index);
      if (children_.names.contains(job)) continue;
      if (!kept_) kept_ = std::make_shared<const api::JobSet>(jobset_);
      if (!builder) {
        builder = std::make_shared<const JobBuilder>(
            *kept_, kept_->spec.replicated_jobs[replicated], strict_);
      }
      plan_.add(runtime::Create{
          .kind = &kube::kinds::kJob,
          .object = {{jobset_.meta.key.ns, std::move(job)},
                     [jobset = kept_, builder, index] { return builder->build(index); }}});
      --room_;
    }
  }

 private:
  const api::JobSet& jobset_;
  bool strict_;
  const Children& children_;
  size_t room_;
  Plan& plan_;
  std::shared_ptr<const api::JobSet> kept_;
};

void add_jobs(const Observed& o, const Children& children, StatusDraft& status, Plan& plan) {
  const api::JobSet& jobset = o.jobset;
  const bool in_order = starts_in_order(jobset) && !jobset.is_suspended();
  const bool none = children.all_exist || waits_for_deletion(jobset, children);
  const size_t room = none ? 0 : kCreatesAtOnce;
  MissingJobs missing(o, children, room, plan);
  for (size_t i = 0; i < jobset.spec.replicated_jobs.size(); ++i) {
    const auto& replicated = jobset.spec.replicated_jobs[i];
    if (!dependencies_reached(jobset, replicated, status)) continue;
    if (in_order && has_started(replicated, status)) continue;
    missing.add(i);
    if (in_order) return status.startup_in_progress();
  }
  if (in_order) status.startup_completed();
}

void suspend(const Children& children, StatusDraft& status, Plan& plan) {
  for (const ChildJob* job : children.active) {
    if (!job->suspended) plan.add(suspend_job(*job));
  }
  status.suspend();
}

// The Jobs to resume: one ReplicatedJob after the other where they start in order.
void resume(const Observed& o, const Children& children, StatusDraft& status, Plan& before,
            Plan& plan) {
  std::unordered_map<std::string_view, std::vector<const ChildJob*>> suspended;
  for (const ChildJob* job : children.active) {
    if (job->suspended) suspended[job->place->replicated_job].push_back(job);
  }
  for (const auto& replicated : o.jobset.spec.replicated_jobs) {
    if (!dependencies_reached(o.jobset, replicated, status)) continue;
    if (starts_in_order(o.jobset) && has_started(replicated, status)) continue;
    if (const auto& jobs = suspended[replicated.name]; !jobs.empty()) {
      const JobBuilder builder(o.jobset, replicated, o.strict);
      for (const ChildJob* job : jobs) {
        if (job->start_time) before.add(forget_start(*job));
        plan.add(o.strict ? resume_job_where_it_was(*job, builder) : resume_job(*job, builder));
      }
    }
    if (starts_in_order(o.jobset)) return status.startup_in_progress();
  }
  status.resume();
}

Plan run(const Observed& o, const Children& children, StatusDraft& status) {
  Plan first;
  Plan second;
  if (!waits_for_resume(o)) {
    add_network_and_claims(o, first);
    add_scaling(o, children, first);
    add_jobs(o, children, status, second);
    if (wants_gang(o.jobset) && !second.empty()) first.add(pod_group(o.jobset));
  }
  if (o.jobset.is_suspended()) {
    suspend(children, status, second);
  } else {
    resume(o, children, status, first, second);
  }
  first.then();
  if (!second.stages.empty()) {
    for (auto& write : second.stages.front()) first.add(std::move(write));
  }
  return first;
}

// Nothing of an invalid spec is begun; it can hardly become valid, as most of it is immutable.
bool refuse_if_invalid(const Observed& o, StatusDraft& status) {
  if (!o.jobs.empty() || o.strict) return false;
  const auto causes = validate(o.jobset);
  if (causes.empty()) return false;
  std::string message;
  for (const Cause& cause : causes) {
    message += (message.empty() ? "" : "; ") + cause.field + ": " + cause.message;
  }
  status.fail("InvalidSpec", std::move(message));
  return true;
}

// The original's event of it.
Plan tell_refusal(const Observed& o) {
  Plan plan;
  const runtime::Refusal& refused = *o.refused;
  std::string_view reason = "JobSetReconcileFailed";
  std::string text = o.strict ? refused.error.message : text_of(refused);
  if (is_creation_of(kube::kinds::kJob, refused)) {
    reason = "JobCreationFailed";
    text = fmt::format("job \"{}\" creation failed with error: {}", refused_name(refused),
                       refused.error.message);
  } else if (is_creation_of(kube::kinds::kService, refused)) {
    reason = "HeadlessServiceCreationFailed";
  } else if (is_creation_of(kube::kinds::kPersistentVolumeClaim, refused)) {
    reason = "PVCCreationFailed";
  }
  plan.emit(ref_to(o.jobset), runtime::Event::Type::kWarning, std::string(reason), std::move(text));
  return plan;
}

// What the API server refuses as invalid stays so: its template is immutable. Anything else that it
// refuses (a quota, a policy) may be lifted, and is only told.
Plan report_refusal(const Observed& o, StatusDraft& status) {
  const runtime::Refusal& refused = *o.refused;
  if (is_creation_of(kube::kinds::kJob, refused) && refused.error.is(Reason::kInvalid)) {
    status.fail("InvalidSpec", text_of(refused));
  }
  return tell_refusal(o);
}

Plan advance(const Observed& o, Children& children, StatusDraft& status, Time now) {
  Plan plan = delete_jobs(o, children.previous);
  plan.add(release_stuck(o, children.previous, now));
  plan.add(hold_names_of_running_pods(o, now, children));
  if (!o.jobset.is_suspended() && status.all_jobs_ready()) {
    status.restarting_over("JobsReady", "all jobs are ready");
  }
  if (!children.failed.empty()) {
    apply_failure_policy(o, children, status);
  } else if (has_succeeded(o.jobset, children)) {
    status.complete();
  } else if (!refuse_if_invalid(o, status)) {
    plan.add(run(o, children, status));
  }
  return plan;
}

}  // namespace

Plan plan(const Observed& o, Time now) {
  const api::JobSet& jobset = o.jobset;
  if (jobset.meta.is_being_deleted() || is_managed_by_another(jobset)) return {};
  if (o.strict && was_tampered_with(o.jobs)) return {};
  if (o.strict && o.refused != nullptr) return tell_refusal(o);
  Children children = sort_children(jobset, o.jobs, o.strict);
  StatusDraft status(jobset, now, o.strict);
  status.count(children);
  Plan plan;
  if (o.refused != nullptr) {
    plan = report_refusal(o, status);
  } else if (is_finished(jobset)) {
    plan = delete_jobs(o, children.active);
    if (!o.strict) plan.add(delete_jobs(o, children.previous));
    plan.add(expire(jobset, now));
  } else {
    plan = advance(o, children, status, now);
    if (o.find_node) plan.add(place_followers(o.pods, o.find_node, now));
  }
  std::move(status).write_to(plan);
  return plan;
}

bool needs_pods(const api::JobSet& jobset) {
  if (has_restarted(jobset)) return true;
  if (jobset.meta.annotations.has(keys::kExclusiveTopology)) return true;
  return std::ranges::any_of(jobset.spec.replicated_jobs, [](const api::ReplicatedJob& replicated) {
    return at(replicated.job_template, "metadata", "annotations", keys::kExclusiveTopology) !=
           nullptr;
  });
}

}  // namespace grapnel::jobset
