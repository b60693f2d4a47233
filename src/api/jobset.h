// JobSet (jobset.x-k8s.io/v1alpha2): Jobs that run, fail and restart together. Fields, defaults and
// rules are those of the JobSet controller, v0.12.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api/codec.h"
#include "api/condition.h"
#include "kube/meta.h"

namespace grapnel::api {

BOOST_DEFINE_ENUM_CLASS(DependencyStatus, Ready, Complete)
BOOST_DEFINE_ENUM_CLASS(SuccessOperator, All, Any)
BOOST_DEFINE_ENUM_CLASS(FailureAction, FailJobSet, RestartJobSet, RestartJobSetAndIgnoreMaxRestarts,
                        RestartJob, RestartJobAndIgnoreMaxRestarts)
BOOST_DEFINE_ENUM_CLASS(RestartStrategy, Recreate, BlockingRecreate, InPlaceRestart)
BOOST_DEFINE_ENUM_CLASS(StartupOrder, AnyOrder, InOrder)
BOOST_DEFINE_ENUM_CLASS(VolumeRetention, Delete, Retain)

struct Dependency {
  std::string name;
  DependencyStatus status = DependencyStatus::Ready;
  bool operator==(const Dependency&) const = default;
};

struct ReplicatedJob {
  std::string name;
  std::string group_name = "default";
  int32_t replicas = 1;
  Json job_template;  // batch/v1 JobTemplateSpec, whole
  std::vector<Dependency> depends_on;

  const Json* pod_template() const;
  const Json* pod_spec() const;
  std::optional<int32_t> parallelism() const;
  std::optional<int32_t> completions() const;
  bool is_indexed() const;  // unset counts as Indexed, the default of a JobSet
};

struct JobSetNetwork {
  bool enable_dns_hostnames = true;
  std::string subdomain;
  bool publish_not_ready_addresses = true;
  bool operator==(const JobSetNetwork&) const = default;
};

struct SuccessPolicy {
  SuccessOperator op = SuccessOperator::All;
  std::vector<std::string> targets;
  bool operator==(const SuccessPolicy&) const = default;
};

struct FailureRule {
  std::string name;
  FailureAction action = FailureAction::RestartJobSet;
  std::vector<std::string> on_job_failure_reasons;
  std::vector<std::string> on_job_failure_message_patterns;
  std::vector<std::string> targets;
  bool operator==(const FailureRule&) const = default;
};

struct FailurePolicy {
  int32_t max_restarts = 0;
  RestartStrategy restart_strategy = RestartStrategy::Recreate;
  std::vector<FailureRule> rules;
  bool operator==(const FailurePolicy&) const = default;
};

struct StartupPolicy {
  StartupOrder order = StartupOrder::AnyOrder;
  bool operator==(const StartupPolicy&) const = default;
};

struct Coordinator {
  std::string replicated_job;
  int64_t job_index = 0;
  int64_t pod_index = 0;
  bool operator==(const Coordinator&) const = default;
};

struct VolumeRetentionPolicy {
  VolumeRetention when_deleted = VolumeRetention::Delete;
  bool operator==(const VolumeRetentionPolicy&) const = default;
};

struct VolumeClaimPolicy {
  std::vector<Json> templates;  // PersistentVolumeClaims
  VolumeRetentionPolicy retention_policy;
};

struct JobSetSpec {
  std::vector<ReplicatedJob> replicated_jobs;
  JobSetNetwork network;
  SuccessPolicy success_policy;
  std::optional<FailurePolicy> failure_policy;
  StartupPolicy startup_policy;
  std::optional<bool> suspend;
  std::optional<Coordinator> coordinator;
  std::optional<std::string> managed_by;
  std::optional<int32_t> ttl_seconds_after_finished;
  std::vector<VolumeClaimPolicy> volume_claim_policies;
};

struct ReplicatedJobStatus {
  std::string name;
  int32_t ready = 0;
  int32_t succeeded = 0;
  int32_t failed = 0;
  int32_t active = 0;
  int32_t suspended = 0;
  std::vector<int32_t> job_restarts;  // by job index; empty: none yet
  std::vector<int32_t> job_restarts_count_towards_max;
  bool operator==(const ReplicatedJobStatus&) const = default;
};

struct JobSetStatus {
  std::vector<Condition> conditions;
  std::optional<int32_t> restarts;  // unset: no status was written yet
  std::optional<int32_t> restarts_count_towards_max;
  std::string terminal_state;
  std::vector<ReplicatedJobStatus> replicated_jobs;
  std::optional<int32_t> previous_in_place_restart_attempt;
  std::optional<int32_t> current_in_place_restart_attempt;
  bool operator==(const JobSetStatus&) const = default;
};

struct JobSet {
  kube::Meta meta;
  JobSetSpec spec;
  JobSetStatus status;

  bool is_suspended() const { return spec.suspend.value_or(false); }
  const ReplicatedJob* find_replicated_job(std::string_view name) const;
  bool operator==(const JobSet& other) const;
};

template <>
struct Resource<JobSet> {
  static ResourceInfo info();
  static kube::MetaOptions kept_metadata();
};

Result<JobSet> decode_jobset(JsonView object, Unknown unknown = Unknown::kIgnore);
Json encode_spec(const JobSetSpec& spec);
Json encode_status(const JobSetStatus& status);
Json jobset_crd();
std::string jobset_reference_page();

}  // namespace grapnel::api
