#include "api/jobset.h"

#include <algorithm>

#include "api/job_template.h"
#include "api/keys.h"
#include "api/schema.h"

namespace grapnel::api {
namespace {

constexpr Rule kImmutable{"self == oldSelf", "Value is immutable"};

std::optional<int32_t> count_at(const Json* value) {
  if (value == nullptr) return std::nullopt;
  const auto number = JsonView(*value).as_int();
  return number && std::in_range<int32_t>(*number) ? std::optional(static_cast<int32_t>(*number))
                                                   : std::nullopt;
}

}  // namespace

template <>
struct Description<Dependency> {
  static constexpr std::string_view kDoc = "What another ReplicatedJob must have reached.";
  static auto fields() {
    return std::tuple{
        field("name", &Dependency::name, "An earlier ReplicatedJob.").required(),
        field("status", &Dependency::status, "What it must have reached.").required(),
    };
  }
};

template <>
struct Description<ReplicatedJob> {
  static constexpr std::string_view kDoc = "Jobs made from one template.";
  static auto fields() {
    return std::tuple{
        field("name", &ReplicatedJob::name, "Its name, a part of its Jobs' names.").required(),
        field("groupName", &ReplicatedJob::group_name, "The group in which its Jobs are counted.")
            .defaulted(),
        field("replicas", &ReplicatedJob::replicas, "How many Jobs.").defaulted().minimum(0),
        field("template", &ReplicatedJob::job_template, "The Job, as in batch/v1.")
            .required()
            .shaped(job_template_schema),
        field("dependsOn", &ReplicatedJob::depends_on,
              "Its Jobs are created once these earlier ReplicatedJobs got there.")
            .map_by("name")
            .max_items(5)
            .rule(kImmutable.expression, kImmutable.message),
    };
  }
};

template <>
struct Description<JobSetNetwork> {
  static constexpr std::string_view kDoc = "How pods find each other.";
  static auto fields() {
    return std::tuple{
        field("enableDNSHostnames", &JobSetNetwork::enable_dns_hostnames,
              "Pods are reached by name: <jobset>-<replicatedJob>-<job>-<pod>.<subdomain>.")
            .defaulted(),
        field("subdomain", &JobSetNetwork::subdomain, "The JobSet's name when it is not set."),
        field("publishNotReadyAddresses", &JobSetNetwork::publish_not_ready_addresses,
              "Names resolve before pods are ready.")
            .defaulted(),
    };
  }
};

template <>
struct Description<SuccessPolicy> {
  static constexpr std::string_view kDoc = "When the JobSet has succeeded.";
  static auto fields() {
    return std::tuple{
        field("operator", &SuccessPolicy::op, "All or any of the Jobs must succeed.").required(),
        field("targetReplicatedJobs", &SuccessPolicy::targets,
              "The ReplicatedJobs that count; all when empty."),
    };
  }
};

template <>
struct Description<FailureRule> {
  static constexpr std::string_view kDoc = "What to do about a failure of this sort.";
  static auto fields() {
    return std::tuple{
        field("name", &FailureRule::name, "failurePolicyRuleN when it is not set."),
        field("action", &FailureRule::action, "What to do.").required(),
        field("onJobFailureReasons", &FailureRule::on_job_failure_reasons,
              "Reasons of the Job's failure; any when empty."),
        field("onJobFailureMessagePatterns", &FailureRule::on_job_failure_message_patterns,
              "Regular expressions (RE2) for the message of the Job's failure; any when empty."),
        field("targetReplicatedJobs", &FailureRule::targets,
              "The ReplicatedJobs it is about; all when empty."),
    };
  }
};

template <>
struct Description<FailurePolicy> {
  static constexpr std::string_view kDoc = "What to do when a Job fails.";
  static auto fields() {
    return std::tuple{
        field("maxRestarts", &FailurePolicy::max_restarts, "How often it may restart."),
        field("restartStrategy", &FailurePolicy::restart_strategy,
              "How Jobs are replaced in a restart.")
            .defaulted(),
        field("rules", &FailurePolicy::rules,
              "The first that matches is done; RestartJobSet when none does."),
    };
  }
};

template <>
struct Description<StartupPolicy> {
  static constexpr std::string_view kDoc = "In what order ReplicatedJobs start. Use dependsOn.";
  static auto fields() {
    return std::tuple{
        field("startupPolicyOrder", &StartupPolicy::order, "The order.").required(),
    };
  }
};

template <>
struct Description<Coordinator> {
  static constexpr std::string_view kDoc = "The pod that others are told the address of.";
  static auto fields() {
    return std::tuple{
        field("replicatedJob", &Coordinator::replicated_job, "Its ReplicatedJob.").required(),
        field("jobIndex", &Coordinator::job_index, "Its Job in that."),
        field("podIndex", &Coordinator::pod_index, "Its completion index in that."),
    };
  }
};

template <>
struct Description<VolumeRetentionPolicy> {
  static constexpr std::string_view kDoc = "What becomes of the claims.";
  static auto fields() {
    return std::tuple{
        field("whenDeleted", &VolumeRetentionPolicy::when_deleted, "With the JobSet.").defaulted(),
    };
  }
};

template <>
struct Description<VolumeClaimPolicy> {
  static constexpr std::string_view kDoc = "Claims shared by the ReplicatedJobs that mount them.";
  static auto fields() {
    return std::tuple{
        field("templates", &VolumeClaimPolicy::templates,
              "PersistentVolumeClaims, made as <name>-<jobset>.")
            .max_items(50)
            .shaped(volume_claims_schema),
        field("retentionPolicy", &VolumeClaimPolicy::retention_policy, "What becomes of them.")
            .defaulted(),
    };
  }
  static std::vector<Rule> rules() {
    return {
        {"!has(self.templates) || self.templates.all(t, !has(t.metadata) || "
         "!has(t.metadata.namespace) || size(t.metadata.namespace) == 0)",
         "namespace cannot be set for VolumeClaimPolicies templates"}};
  }
};

template <>
struct Description<JobSetSpec> {
  static constexpr std::string_view kDoc = "What is asked for.";
  static auto fields() {
    return std::tuple{
        field("replicatedJobs", &JobSetSpec::replicated_jobs, "The Jobs.").map_by("name"),
        field("network", &JobSetSpec::network, "How pods find each other.")
            .defaulted()
            .rule(kImmutable.expression, kImmutable.message),
        field("successPolicy", &JobSetSpec::success_policy, "When the JobSet has succeeded.")
            .defaulted()
            .rule(kImmutable.expression, kImmutable.message),
        field("failurePolicy", &JobSetSpec::failure_policy,
              "What to do when a Job fails. Without it the JobSet fails.")
            .rule(kImmutable.expression, kImmutable.message),
        field("startupPolicy", &JobSetSpec::startup_policy, "In what order ReplicatedJobs start.")
            .defaulted()
            .rule(kImmutable.expression, kImmutable.message),
        field("suspend", &JobSetSpec::suspend, "Hold all Jobs."),
        field("coordinator", &JobSetSpec::coordinator,
              "The pod whose address all Jobs and pods carry."),
        field("managedBy", &JobSetSpec::managed_by,
              "Another controller than jobset.sigs.k8s.io/jobset-controller."),
        field("ttlSecondsAfterFinished", &JobSetSpec::ttl_seconds_after_finished,
              "It is deleted so long after it finished.")
            .minimum(0),
        field("volumeClaimPolicies", &JobSetSpec::volume_claim_policies,
              "Claims that are made for the JobSet.")
            .max_items(50)
            .rule(kImmutable.expression, kImmutable.message),
    };
  }
  static std::vector<Rule> rules() {
    return {
        {"!(has(self.startupPolicy) && self.startupPolicy.startupPolicyOrder == 'InOrder' && "
         "has(self.replicatedJobs) && self.replicatedJobs.exists(x, has(x.dependsOn)))",
         "StartupPolicy and DependsOn APIs are mutually exclusive"}};
  }
};

template <>
struct Description<ReplicatedJobStatus> {
  static constexpr std::string_view kDoc = "The Jobs of one ReplicatedJob, counted.";
  static auto fields() {
    using Status = ReplicatedJobStatus;
    return std::tuple{
        field("name", &Status::name, "Its name.").required(),
        field("ready", &Status::ready, "Jobs whose pods are all ready or done.").required(),
        field("succeeded", &Status::succeeded, "Jobs that succeeded.").required(),
        field("failed", &Status::failed, "Jobs that failed.").required(),
        field("active", &Status::active, "Jobs with a pod pending or running.").required(),
        field("suspended", &Status::suspended, "Jobs that are suspended.").required(),
        field("jobRestarts", &Status::job_restarts, "Restarts of each Job alone.").max_items(1024),
        field("jobRestartsCountTowardsMax", &Status::job_restarts_count_towards_max,
              "Those of them that maxRestarts limits.")
            .max_items(1024),
    };
  }
};

template <>
struct Description<JobSetStatus> {
  static constexpr std::string_view kDoc = "What was seen.";
  static auto fields() {
    return std::tuple{
        field("conditions", &JobSetStatus::conditions, "Its conditions.").map_by("type"),
        field("restarts", &JobSetStatus::restarts, "How often all Jobs were recreated."),
        field("restartsCountTowardsMax", &JobSetStatus::restarts_count_towards_max,
              "Those of them that maxRestarts limits."),
        field("terminalState", &JobSetStatus::terminal_state, "Completed or Failed, at the end."),
        field("replicatedJobsStatus", &JobSetStatus::replicated_jobs, "Its Jobs, counted.")
            .map_by("name"),
        field("previousInPlaceRestartAttempt", &JobSetStatus::previous_in_place_restart_attempt,
              "Pods at or below it restart in place.")
            .minimum(0),
        field("currentInPlaceRestartAttempt", &JobSetStatus::current_in_place_restart_attempt,
              "Pods at it may run.")
            .minimum(0),
    };
  }
};

const Json* ReplicatedJob::pod_template() const {
  return at(job_template, "spec", "template");
}

const Json* ReplicatedJob::pod_spec() const {
  return at(job_template, "spec", "template", "spec");
}

std::optional<int32_t> ReplicatedJob::parallelism() const {
  return count_at(at(job_template, "spec", "parallelism"));
}

std::optional<int32_t> ReplicatedJob::completions() const {
  return count_at(at(job_template, "spec", "completions"));
}

bool ReplicatedJob::is_indexed() const {
  return string_or(at(job_template, "spec", "completionMode"), "Indexed") == "Indexed";
}

const ReplicatedJob* JobSet::find_replicated_job(std::string_view name) const {
  const auto found = std::ranges::find(spec.replicated_jobs, name, &ReplicatedJob::name);
  return found == spec.replicated_jobs.end() ? nullptr : &*found;
}

ResourceInfo Resource<JobSet>::info() {
  return {
      .kind = kube::kinds::kJobSet,
      .singular = "jobset",
      .columns = {{"TerminalState", "string", ".status.terminalState"},
                  {"Restarts", "string", ".status.restarts"},
                  {"Completed", "string", ".status.conditions[?(@.type==\"Completed\")].status"},
                  {"Suspended", "string", ".spec.suspend"},
                  {"Age", "date", ".metadata.creationTimestamp"}}};
}

kube::MetaOptions Resource<JobSet>::kept_metadata() {
  using namespace keys::jobset;
  return {.annotations = {kExclusiveTopology, kNodeSelectorStrategy, kCreateSuspendedJobs,
                          kGangScheduler, kGangQueue, kStuckDeletionTimeout}};
}

bool JobSet::operator==(const JobSet& other) const {
  return meta == other.meta && equal_values(spec, other.spec) && status == other.status;
}

Result<JobSet> decode_jobset(JsonView object, Unknown unknown) {
  return decode_resource<JobSet>(object, unknown);
}

Json encode_spec(const JobSetSpec& spec) {
  return encode(spec);
}

Json encode_status(const JobSetStatus& status) {
  return encode(status);
}

Json jobset_crd() {
  return crd_of<JobSet>();
}

std::string jobset_reference_page() {
  return reference_page_of<JobSet>();
}

}  // namespace grapnel::api
