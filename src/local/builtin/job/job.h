// A batch/v1 Job and the pods it owns, as the Job controller of the laptop cluster reads them.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "api/codec.h"
#include "api/describe.h"

namespace grapnel::local {

BOOST_DEFINE_ENUM_CLASS(CompletionMode, NonIndexed, Indexed)
BOOST_DEFINE_ENUM_CLASS(FailureAction, FailJob, Ignore, Count, FailIndex)
BOOST_DEFINE_ENUM_CLASS(ExitCodeOperator, In, NotIn)
BOOST_DEFINE_ENUM_CLASS(PodReplacementPolicy, TerminatingOrFailed, Failed)

struct OnExitCodes {
  std::optional<std::string> container_name;
  ExitCodeOperator op = ExitCodeOperator::In;
  std::vector<int64_t> values;
};

struct OnPodCondition {
  std::string type;
  std::string status = "True";
};

struct FailureRule {
  FailureAction action = FailureAction::Count;
  std::optional<OnExitCodes> on_exit_codes;
  std::vector<OnPodCondition> on_pod_conditions;
};

struct FailurePolicy {
  std::vector<FailureRule> rules;
};

struct SuccessRule {
  std::optional<std::string> succeeded_indexes;
  std::optional<int64_t> succeeded_count;
};

struct SuccessPolicy {
  std::vector<SuccessRule> rules;
};

struct JobSpec {
  std::optional<int64_t> parallelism;
  std::optional<int64_t> completions;
  CompletionMode completion_mode = CompletionMode::NonIndexed;
  std::optional<int64_t> backoff_limit;
  std::optional<int64_t> backoff_limit_per_index;
  std::optional<int64_t> max_failed_indexes;
  std::optional<int64_t> active_deadline_seconds;
  std::optional<int64_t> ttl_seconds_after_finished;
  std::optional<bool> suspend;
  std::optional<FailurePolicy> pod_failure_policy;
  std::optional<SuccessPolicy> success_policy;
  std::optional<PodReplacementPolicy> pod_replacement_policy;
  std::optional<std::string> managed_by;
  Json pod_template;

  bool indexed() const { return completion_mode == CompletionMode::Indexed; }
  bool suspended() const { return suspend.value_or(false); }
};

struct JobCondition {
  std::string type;
  std::string status;
  std::string reason;
  std::string message;
  std::optional<Time> last_probe_time;
  std::optional<Time> last_transition_time;
};

struct UncountedPods {
  std::vector<std::string> succeeded;
  std::vector<std::string> failed;
};

struct JobStatus {
  std::vector<JobCondition> conditions;
  std::optional<Time> start_time;
  std::optional<Time> completion_time;
  std::optional<int64_t> active;
  std::optional<int64_t> ready;
  std::optional<int64_t> terminating;
  std::optional<int64_t> succeeded;
  std::optional<int64_t> failed;
  std::string completed_indexes;
  std::optional<std::string> failed_indexes;
  std::optional<UncountedPods> uncounted_terminated_pods;

  const JobCondition* condition(std::string_view type) const;  // nullptr unless its status is True
};

struct Job {
  kube::Meta meta;
  JobSpec spec;
  JobStatus status;
  bool operator==(const Job& other) const;
};

struct ContainerExit {
  std::string name;
  int64_t exit_code = 0;
};

// A pod of a Job.
struct JobPod {
  kube::Meta meta;
  std::string phase;
  bool ready = false;
  int64_t restarts = 0;
  std::optional<Time> finished;
  std::vector<ContainerExit> exits;  // of containers that ended with a failure
  std::vector<OnPodCondition> conditions;

  bool is_terminal() const { return phase == "Succeeded" || phase == "Failed"; }
  bool has_tracking_finalizer() const;
  std::optional<int64_t> index() const;  // batch.kubernetes.io/job-completion-index
  bool operator==(const JobPod&) const;
};

inline constexpr std::string_view kTrackingFinalizer = "batch.kubernetes.io/job-tracking";
inline constexpr std::string_view kCompletionIndex = "batch.kubernetes.io/job-completion-index";
inline constexpr std::string_view kIndexFailureCount =
    "batch.kubernetes.io/job-index-failure-count";

Result<Job> decode_job(JsonView object);
Result<JobPod> decode_job_pod(JsonView object);
Json encode_status(const JobStatus& status);

}  // namespace grapnel::local

namespace grapnel::api {

template <>
struct Description<local::OnExitCodes> {
  static constexpr std::string_view kDoc = "";
  static auto fields() {
    return std::tuple{field("containerName", &local::OnExitCodes::container_name, ""),
                      field("operator", &local::OnExitCodes::op, "").required(),
                      field("values", &local::OnExitCodes::values, "").required()};
  }
};

template <>
struct Description<local::OnPodCondition> {
  static constexpr std::string_view kDoc = "";
  static auto fields() {
    return std::tuple{field("type", &local::OnPodCondition::type, "").required(),
                      field("status", &local::OnPodCondition::status, "")};
  }
};

template <>
struct Description<local::FailureRule> {
  static constexpr std::string_view kDoc = "";
  static auto fields() {
    return std::tuple{field("action", &local::FailureRule::action, "").required(),
                      field("onExitCodes", &local::FailureRule::on_exit_codes, ""),
                      field("onPodConditions", &local::FailureRule::on_pod_conditions, "")};
  }
};

template <>
struct Description<local::FailurePolicy> {
  static constexpr std::string_view kDoc = "";
  static auto fields() { return std::tuple{field("rules", &local::FailurePolicy::rules, "")}; }
};

template <>
struct Description<local::SuccessRule> {
  static constexpr std::string_view kDoc = "";
  static auto fields() {
    return std::tuple{field("succeededIndexes", &local::SuccessRule::succeeded_indexes, ""),
                      field("succeededCount", &local::SuccessRule::succeeded_count, "")};
  }
};

template <>
struct Description<local::SuccessPolicy> {
  static constexpr std::string_view kDoc = "";
  static auto fields() { return std::tuple{field("rules", &local::SuccessPolicy::rules, "")}; }
};

template <>
struct Description<local::JobSpec> {
  static constexpr std::string_view kDoc = "";
  static auto fields() {
    using local::JobSpec;
    return std::tuple{
        field("parallelism", &JobSpec::parallelism, ""),
        field("completions", &JobSpec::completions, ""),
        field("completionMode", &JobSpec::completion_mode, ""),
        field("backoffLimit", &JobSpec::backoff_limit, ""),
        field("backoffLimitPerIndex", &JobSpec::backoff_limit_per_index, ""),
        field("maxFailedIndexes", &JobSpec::max_failed_indexes, ""),
        field("activeDeadlineSeconds", &JobSpec::active_deadline_seconds, ""),
        field("ttlSecondsAfterFinished", &JobSpec::ttl_seconds_after_finished, ""),
        field("suspend", &JobSpec::suspend, ""),
        field("podFailurePolicy", &JobSpec::pod_failure_policy, ""),
        field("successPolicy", &JobSpec::success_policy, ""),
        field("podReplacementPolicy", &JobSpec::pod_replacement_policy, ""),
        field("managedBy", &JobSpec::managed_by, ""),
        field("template", &JobSpec::pod_template, "").required(),
    };
  }
};

template <>
struct Description<local::JobCondition> {
  static constexpr std::string_view kDoc = "";
  static auto fields() {
    using local::JobCondition;
    return std::tuple{field("type", &JobCondition::type, "").required(),
                      field("status", &JobCondition::status, "").required(),
                      field("reason", &JobCondition::reason, ""),
                      field("message", &JobCondition::message, ""),
                      field("lastProbeTime", &JobCondition::last_probe_time, ""),
                      field("lastTransitionTime", &JobCondition::last_transition_time, "")};
  }
};

template <>
struct Description<local::UncountedPods> {
  static constexpr std::string_view kDoc = "";
  static auto fields() {
    return std::tuple{field("succeeded", &local::UncountedPods::succeeded, ""),
                      field("failed", &local::UncountedPods::failed, "")};
  }
};

template <>
struct Description<local::JobStatus> {
  static constexpr std::string_view kDoc = "";
  static auto fields() {
    using local::JobStatus;
    return std::tuple{
        field("conditions", &JobStatus::conditions, ""),
        field("startTime", &JobStatus::start_time, ""),
        field("completionTime", &JobStatus::completion_time, ""),
        field("active", &JobStatus::active, ""),
        field("ready", &JobStatus::ready, ""),
        field("terminating", &JobStatus::terminating, ""),
        field("succeeded", &JobStatus::succeeded, ""),
        field("failed", &JobStatus::failed, ""),
        field("completedIndexes", &JobStatus::completed_indexes, ""),
        field("failedIndexes", &JobStatus::failed_indexes, ""),
        field("uncountedTerminatedPods", &JobStatus::uncounted_terminated_pods, ""),
    };
  }
};

template <>
struct Resource<local::Job> {
  static ResourceInfo info() { return {.kind = kube::kinds::kJob, .singular = "job"}; }
};

}  // namespace grapnel::api
