#include "operators/jobset/status.h"

#include <algorithm>
#include <unordered_map>

#include "operators/jobset/names.h"

namespace grapnel::jobset {
namespace {

using api::ConditionStatus;
using EventType = runtime::Event::Type;

bool is_ready(const api::Job& job) {
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

std::string_view opposite_of(std::string_view type) {
  if (type == conditions::kStartupInProgress) return conditions::kStartupCompleted;
  if (type == conditions::kStartupCompleted) return conditions::kStartupInProgress;
  return "";
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

StatusDraft::StatusDraft(const api::JobSet& jobset, Time now)
    : jobset_(jobset), now_(now), status_(jobset.status) {}

void StatusDraft::count(const Children& children) {
  std::vector<api::ReplicatedJobStatus> counted;
  std::unordered_map<std::string_view, size_t> place;
  for (const auto& replicated : jobset_.spec.replicated_jobs) {
    place[replicated.name] = counted.size();
    auto& status = counted.emplace_back();
    status.name = replicated.name;
    const auto before = std::ranges::find(status_.replicated_jobs, replicated.name,
                                          &api::ReplicatedJobStatus::name);
    if (before == status_.replicated_jobs.end()) continue;
    status.job_restarts = std::move(before->job_restarts);
    status.job_restarts_count_towards_max = std::move(before->job_restarts_count_towards_max);
  }
  const auto for_each = [&](const std::vector<const api::Job*>& jobs, auto&& add) {
    for (const api::Job* job : jobs) {
      const auto found = place.find(job->place->replicated_job.view());
      if (found != place.end()) add(counted[found->second], *job);
    }
  };
  for_each(children.active, [](auto& status, const api::Job& job) {
    if (is_ready(job)) ++status.ready;
    if (job.active > 0) ++status.active;
    if (job.suspended) ++status.suspended;
  });
  for_each(children.successful, [](auto& status, const api::Job&) { ++status.succeeded; });
  for_each(children.failed, [](auto& status, const api::Job&) { ++status.failed; });
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
  set({conditions::kCompleted, true, "AllJobsCompleted", "jobset completed successfully"});
  restarting_over("JobSetCompleted", "jobset completed successfully");
  status_.terminal_state = conditions::kCompleted;
  add_to("jobset_completed_total");
}

void StatusDraft::fail(std::string reason, std::string message) {
  set({conditions::kFailed, true, std::move(reason), std::move(message)}, EventType::kWarning);
  restarting_over("JobSetFailed", "jobset failed");
  status_.terminal_state = conditions::kFailed;
  add_to("jobset_failed_total");
}

void StatusDraft::suspend() {
  set({conditions::kSuspended, true, "SuspendedJobs", "jobset is suspended"});
  restarting_over("JobSetSuspended", "jobset is suspended");
}

void StatusDraft::resume() {
  set({conditions::kSuspended, false, "ResumeJobs", "jobset is resumed"});
}

void StatusDraft::startup_in_progress() {
  set({conditions::kStartupInProgress, true, "InOrderStartupPolicyInProgress",
       "in order startup policy is in progress"});
}

void StatusDraft::startup_completed() {
  set({conditions::kStartupCompleted, true, "InOrderStartupPolicyCompleted",
       "in order startup policy has completed"});
}

void StatusDraft::restart(std::string reason, std::string message) {
  set({conditions::kRestarting, true, std::move(reason), std::move(message)}, EventType::kWarning);
}

void StatusDraft::restarting_over(std::string reason, std::string message) {
  set({conditions::kRestarting, false, std::move(reason), std::move(message)});
}

void StatusDraft::warn(std::string reason, std::string message) {
  emit(EventType::kWarning, std::move(reason), std::move(message));
}

void StatusDraft::write_to(runtime::Plan& plan) && {
  if (status_ == jobset_.status) return;
  // Always written, so that `kubectl get` shows it from the start.
  status_.restarts = status_.restarts.value_or(0);
  plan.set_status(ref_to(jobset_), encode_status(jobset_.status), encode_status(status_));
  // Counters of restarts are read, raised and written: never over a newer version.
  if (plan.status) plan.status->if_version = jobset_.meta.resource_version;
  plan.between_counts = between_counts_of(jobset_);
  plan.add(std::move(notices_));
}

// A condition that never held is not reported as false.
void StatusDraft::set(Change change, EventType event) {
  if (change.holds) {
    end_exclusive(opposite_of(change.type));
  } else if (api::find_condition(status_.conditions, change.type) == nullptr) {
    return;
  }
  const bool changed =
      api::set_condition(status_.conditions,
                         {.type = std::string(change.type),
                          .status = change.holds ? ConditionStatus::True : ConditionStatus::False,
                          .reason = change.reason,
                          .message = change.message},
                         now_);
  if (changed) emit(event, std::move(change.reason), std::move(change.message));
}

void StatusDraft::end_exclusive(std::string_view type) {
  const auto* condition = api::find_condition(status_.conditions, type);
  if (condition == nullptr || condition->status != ConditionStatus::True) return;
  api::Condition ended = *condition;
  ended.status = ConditionStatus::False;
  api::set_condition(status_.conditions, std::move(ended), now_);
}

void StatusDraft::emit(EventType type, std::string reason, std::string message) {
  notices_.emit(ref_to(jobset_), type, std::move(reason), std::move(message));
}

void StatusDraft::add_to(std::string_view metric) {
  notices_.counts.push_back({.metric = std::string(metric), .labels = metric_labels(jobset_)});
}

}  // namespace grapnel::jobset
