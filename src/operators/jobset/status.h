// The status that a plan leads to, while it is being made: counts of Jobs, conditions, and the
// event that goes with each change of a condition.
#pragma once

#include <string>
#include <string_view>

#include "api/jobset.h"
#include "operators/common/conditions.h"
#include "operators/jobset/children.h"
#include "runtime/plan.h"

namespace grapnel::jobset {

namespace conditions {
inline constexpr std::string_view kCompleted = "Completed";
inline constexpr std::string_view kFailed = "Failed";
inline constexpr std::string_view kSuspended = "Suspended";
inline constexpr std::string_view kRestarting = "RestartingJobSet";
inline constexpr std::string_view kStartupInProgress = "StartupPolicyInProgress";
inline constexpr std::string_view kStartupCompleted = "StartupPolicyCompleted";
}  // namespace conditions

// Completed or Failed.
bool is_finished(const api::JobSet& jobset);

// Of its series in all metrics.
runtime::MetricLabels metric_labels(const api::JobSet& jobset);

class StatusDraft {
 public:
  StatusDraft(const api::JobSet& jobset, Time now, bool strict);

  // Counts the Jobs of each ReplicatedJob.
  void count(const Children& children);
  const api::ReplicatedJobStatus& of(std::string_view replicated_job) const;
  api::ReplicatedJobStatus& of(std::string_view replicated_job);
  bool all_jobs_ready() const;
  // Its conditions are changed by what follows alone.
  api::JobSetStatus& status() { return status_; }

  void complete();
  void fail(std::string reason, std::string message);
  void suspend();
  void resume();
  void startup_in_progress();
  void startup_completed();
  void restart(std::string reason, std::string message);
  // The restart is over, however it ended.
  void restarting_over(std::string reason, std::string message);
  void warn(std::string reason, std::string message);

  // The patch of the status, its events and counts.
  void write_to(runtime::Plan& plan) &&;

 private:
  void add_to(std::string_view metric);

  const api::JobSet& jobset_;
  bool strict_;
  api::JobSetStatus status_;  // but for its conditions
  operators::ConditionDraft conditions_;
  std::vector<runtime::Count> counts_;
};

}  // namespace grapnel::jobset
