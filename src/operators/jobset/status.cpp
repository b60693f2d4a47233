#include "operators/jobset/status.h"

#include <algorithm>
#include <unordered_map>

#include "operators/common/object.h"

namespace grapnel::jobset {
namespace {

using EventType = runtime::Event::Type;

bool is_ready(const ChildJob& job) {
  const int32_t pods = std::min(job.parallelism, job.completions.value_or(job.parallelism));
  return job.succeeded + job.ready >= pods;
}

int64_t jobs_asked_of(const api::JobSet& jobset) {
  int64_t asked = 0;
  for (const auto& replicated : jobset.spec.replicated_jobs) asked += replicated.replicas;
  return asked;
}

// Five times a second; for thousands of Jobs, which take minutes, as much less often. So what is
// written of a JobSet grows with its Jobs, and not with their number times the time they take.
Duration between_counts_of(const api::JobSet& jobset) {
  return milliseconds(200) * std::max<int64_t>(1, jobs_asked_of(jobset) / 1000);
}

}  // namespace

bool is_finished(const api::JobSet& jobset) {
  const auto& all = jobset.status.conditions;
  return api::is_condition_true(all, conditions::kCompleted) ||
         api::is_condition_true(all, conditions::kFailed);
}

runtime::MetricLabels metric_labels(const api::JobSet& jobset) {
  return {{"jobset_name", jobset.meta.name()}, {"namespace", std::string(jobset.meta.ns())}};
}

StatusDraft::StatusDraft(const api::JobSet& jobset, Time now, bool strict)
    : jobset_(jobset),
      strict_(strict),
      status_(jobset.status),
      conditions_(operators::ref_to(jobset), jobset.status.conditions, now,
                  {{conditions::kStartupInProgress, conditions::kStartupCompleted}}) {}

void StatusDraft::count(const Children& children) {
  std::vector<api::ReplicatedJobStatus> counted;
  std::unordered_map<std::string_view, size_t> place;
  for (const auto& replicated : jobset_.spec.replicated_jobs) {
    place[replicated.name] = counted.size();
    auto& status = counted.emplace_back();
    status.name = replicated.name;
    const auto before = std::ranges::find(status_.replicated_jobs, replicated.name,
                                          &api::ReplicatedJobStatus::name);
    if (before == status_.replicated_jobs.end() || strict_) continue;
    status.job_restarts = std::move(before->job_restarts);
    status.job_restarts_count_towards_max = std::move(before->job_restarts_count_towards_max);
  }
  const auto for_each = [&](const std::vector<const ChildJob*>& jobs, auto&& add) {
    for (const ChildJob* job : jobs) {
      const auto found = place.find(job->place->replicated_job.view());
      if (found != place.end()) add(counted[found->second], *job);
    }
  };
  for_each(children.active, [](auto& status, const ChildJob& job) {
    if (is_ready(job)) ++status.ready;
    if (job.active > 0) ++status.active;
    if (job.suspended) ++status.suspended;
  });
  for_each(children.successful, [](auto& status, const ChildJob&) { ++status.succeeded; });
  std::vector<const ChildJob*> failed;
  for (const FailedJob& each : children.failed) failed.push_back(each.job);
  for_each(failed, [](auto& status, const ChildJob&) { ++status.failed; });
  if (strict_) std::ranges::sort(counted, std::ranges::greater(), &api::ReplicatedJobStatus::name);
  status_.replicated_jobs = std::move(counted);
}

const api::ReplicatedJobStatus& StatusDraft::of(std::string_view replicated_job) const {
  return *std::ranges::find(status_.replicated_jobs, replicated_job,
                            &api::ReplicatedJobStatus::name);
}

api::ReplicatedJobStatus& StatusDraft::of(std::string_view replicated_job) {
  return *std::ranges::find(status_.replicated_jobs, replicated_job,
                            &api::ReplicatedJobStatus::name);
}

bool StatusDraft::all_jobs_ready() const {
  int64_t ready = 0;
  for (const auto& status : status_.replicated_jobs) ready += status.ready + status.succeeded;
  return jobs_asked_of(jobset_) == ready;
}

void StatusDraft::complete() {
  conditions_.set_true(conditions::kCompleted, "AllJobsCompleted", "jobset completed successfully");
  restarting_over("JobSetCompleted", "jobset completed successfully");
  status_.terminal_state = conditions::kCompleted;
  add_to("jobset_completed_total");
}

void StatusDraft::fail(std::string reason, std::string message) {
  conditions_.set_true(conditions::kFailed, std::move(reason), std::move(message),
                       EventType::kWarning);
  restarting_over("JobSetFailed", "jobset failed");
  status_.terminal_state = conditions::kFailed;
  add_to("jobset_failed_total");
}

void StatusDraft::suspend() {
  conditions_.set_true(conditions::kSuspended, "SuspendedJobs", "jobset is suspended");
  restarting_over("JobSetSuspended", "jobset is suspended");
}

void StatusDraft::resume() {
  conditions_.set_false(conditions::kSuspended, "ResumeJobs", "jobset is resumed");
}

void StatusDraft::startup_in_progress() {
  conditions_.set_true(conditions::kStartupInProgress, "InOrderStartupPolicyInProgress",
                       "in order startup policy is in progress");
}

void StatusDraft::startup_completed() {
  conditions_.set_true(conditions::kStartupCompleted, "InOrderStartupPolicyCompleted",
                       "in order startup policy has completed");
}

void StatusDraft::restart(std::string reason, std::string message) {
  conditions_.set_true(conditions::kRestarting, std::move(reason), std::move(message),
                       EventType::kWarning);
}

void StatusDraft::restarting_over(std::string reason, std::string message) {
  conditions_.set_false(conditions::kRestarting, std::move(reason), std::move(message));
}

void StatusDraft::warn(std::string reason, std::string message) {
  conditions_.emit(EventType::kWarning, std::move(reason), std::move(message));
}

void StatusDraft::write_to(runtime::Plan& plan) && {
  status_.conditions = conditions_.all();
  if (status_ == jobset_.status) return;
  // Always written, so that `kubectl get` shows it from the start.
  status_.restarts = status_.restarts.value_or(0);
  plan.set_status(operators::ref_to(jobset_), encode_status(jobset_.status),
                  encode_status(status_));
  // Counters of restarts are read, raised and written: never over a newer version.
  if (plan.status) plan.status->if_version = jobset_.meta.resource_version;
  plan.between_counts = between_counts_of(jobset_);
  std::move(conditions_).add_events_to(plan);
  for (auto& count : counts_) plan.counts.push_back(std::move(count));
}

void StatusDraft::add_to(std::string_view metric) {
  counts_.push_back({.metric = std::string(metric), .labels = metric_labels(jobset_)});
}

}  // namespace grapnel::jobset
