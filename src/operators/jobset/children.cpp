#include "operators/jobset/children.h"

#include <algorithm>
#include <unordered_map>

namespace grapnel::jobset {
namespace {

// Whether its labels name a Job that the spec asks for.
bool is_known(const std::unordered_map<std::string_view, int32_t>& replicas, const api::Job& job) {
  if (!job.place) return false;
  const auto found = replicas.find(job.place->replicated_job.view());
  return found != replicas.end() && job.place->index < found->second;
}

bool is_of_earlier_run(const api::JobSet& jobset, const api::JobSetPlace& place) {
  if (place.restart_attempt < jobset.status.restarts.value_or(0)) return true;
  return place.job_restart_attempt &&
         *place.job_restart_attempt < job_restarts(jobset, place.replicated_job, place.index);
}

}  // namespace

const api::JobCondition* failure_of(const api::Job& job) {
  const auto* target = job.true_condition("FailureTarget");
  return target != nullptr ? target : job.true_condition("Failed");
}

int32_t job_restarts(const api::JobSet& jobset, std::string_view replicated_job, int32_t index) {
  const auto& statuses = jobset.status.replicated_jobs;
  const auto found = std::ranges::find(statuses, replicated_job, &api::ReplicatedJobStatus::name);
  if (found == statuses.end() || index < 0) return 0;
  const auto place = static_cast<size_t>(index);
  return place < found->job_restarts.size() ? found->job_restarts[place] : 0;
}

Children sort_children(const api::JobSet& jobset, const std::vector<const api::Job*>& jobs) {
  std::unordered_map<std::string_view, int32_t> replicas;
  for (const auto& replicated : jobset.spec.replicated_jobs) {
    replicas[replicated.name] = replicated.replicas;
  }
  Children children;
  children.names.reserve(jobs.size());
  for (const api::Job* job : jobs) {
    children.names.insert(job->meta.name());
    // Labels that were tampered with say nothing; we only leave its name alone.
    if (!is_known(replicas, *job)) continue;
    if (is_of_earlier_run(jobset, *job->place)) {
      children.previous.push_back(job);
    } else if (failure_of(*job) != nullptr) {
      children.failed.push_back(job);
    } else if (job->true_condition("Complete") != nullptr) {
      children.successful.push_back(job);
    } else {
      children.active.push_back(job);
    }
  }
  return children;
}

}  // namespace grapnel::jobset
