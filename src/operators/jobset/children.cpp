#include "operators/jobset/children.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <string>
#include <unordered_map>

#include "operators/jobset/names.h"

namespace grapnel::jobset {
namespace {

struct Asked {
  int32_t replicas;
  std::string prefix;  // of the names of its Jobs, before the index
};
using AskedByName = std::unordered_map<std::string_view, Asked>;

AskedByName asked_by(const api::JobSet& jobset) {
  AskedByName asked;
  for (const auto& replicated : jobset.spec.replicated_jobs) {
    std::string prefix = job_name(jobset.meta.name(), replicated.name, 0);
    prefix.pop_back();
    asked[replicated.name] = {replicated.replicas, std::move(prefix)};
  }
  return asked;
}

// What asks for the Job that its labels name.
const Asked* find_asked(const AskedByName& asked, const ChildJob& job) {
  if (!job.place) return nullptr;
  const auto found = asked.find(job.place->replicated_job.view());
  const bool is_known = found != asked.end() && job.place->index < found->second.replicas;
  return is_known ? &found->second : nullptr;
}

// It is asked of thousands of Jobs with each plan.
bool has_its_name(const Asked& asked, const ChildJob& job) {
  std::string_view name = job.meta.name();
  if (!name.starts_with(asked.prefix)) return false;
  name.remove_prefix(asked.prefix.size());
  std::array<char, 16> digits{};
  const auto end = std::to_chars(digits.begin(), digits.end(), job.place->index).ptr;
  return name == std::string_view(digits.begin(), end);
}

bool is_of_earlier_run(const api::JobSet& jobset, const JobPlace& place, bool strict) {
  if (place.restart_attempt < jobset.status.restarts.value_or(0)) return true;
  return !strict && place.job_restart_attempt &&
         *place.job_restart_attempt < job_restarts(jobset, place.replicated_job, place.index);
}

std::optional<JobFailure> failure_of(const ChildJob& job, bool strict) {
  const auto* target = strict ? nullptr : job.true_condition("FailureTarget");
  const auto* failed = job.true_condition("Failed");
  if (target == nullptr || (target->reason.empty() && failed == nullptr)) target = failed;
  if (target == nullptr) return std::nullopt;
  if (failed == nullptr) failed = target;
  const bool says_why = !target->reason.empty();
  return JobFailure{.reason = says_why ? target->reason.view() : failed->reason.view(),
                    .message = target->message.empty() ? failed->message : target->message,
                    .since = target->last_transition_time};
}

}  // namespace

int32_t job_restarts(const api::JobSet& jobset, std::string_view replicated_job, int32_t index) {
  const auto& statuses = jobset.status.replicated_jobs;
  const auto found = std::ranges::find(statuses, replicated_job, &api::ReplicatedJobStatus::name);
  if (found == statuses.end() || index < 0) return 0;
  const auto place = static_cast<size_t>(index);
  return place < found->job_restarts.size() ? found->job_restarts[place] : 0;
}

Children sort_children(const api::JobSet& jobset, const std::vector<const ChildJob*>& jobs,
                       bool strict) {
  const AskedByName asked = asked_by(jobset);
  int64_t missing = 0;
  for (const auto& [name, each] : asked) missing += each.replicas;
  Children children;
  for (const ChildJob* job : jobs) {
    // Labels that were tampered with say nothing; we only leave its name alone.
    const Asked* by = find_asked(asked, *job);
    if (by == nullptr) continue;
    if (has_its_name(*by, *job)) --missing;
    if (is_of_earlier_run(jobset, *job->place, strict)) {
      children.previous.push_back(job);
    } else if (const auto why = failure_of(*job, strict)) {
      children.failed.push_back({job, *why});
    } else if (job->true_condition("Complete") != nullptr) {
      children.successful.push_back(job);
    } else {
      children.active.push_back(job);
    }
  }
  children.all_exist = missing == 0;
  if (children.all_exist) return children;
  children.names.reserve(jobs.size());
  for (const ChildJob* job : jobs) children.names.insert(job->meta.name());
  return children;
}

}  // namespace grapnel::jobset
