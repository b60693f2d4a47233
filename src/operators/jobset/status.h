// The status that a plan leads to, while it is being made: counts of Jobs, conditions, and the
// event that goes with each change of a condition.
#pragma once

#include <string>
#include <string_view>

#include "api/jobset.h"
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
  StatusDraft(const api::JobSet& jobset, Time now);

  // Counts the Jobs of each ReplicatedJob.
  void count(const Children& children);
  const api::ReplicatedJobStatus& of(std::string_view replicated_job) const;
  api::ReplicatedJobStatus& of(std::string_view replicated_job);
  bool all_jobs_ready() const;
  api::JobSetStatus& status() { return status_; }
  const api::JobSetStatus& status() const { return status_; }

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
  struct Change {
    std::string_view type;
    bool holds = true;
    std::string reason;
    std::string message;
  };
  void set(Change change, runtime::Event::Type event = runtime::Event::Type::kNormal);
  void end_exclusive(std::string_view type);
  void emit(runtime::Event::Type type, std::string reason, std::string message);
  void add_to(std::string_view metric);

  const api::JobSet& jobset_;
  Time now_;
  api::JobSetStatus status_;
  runtime::Plan notices_;  // events and counts
};

}  // namespace grapnel::jobset
