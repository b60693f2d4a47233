// The labels and annotations that we read or write, by the kind they belong to. Users' selectors,
// dashboards and environment variables depend on every one of these texts.
#pragma once

#include <string_view>

// On the Jobs and pods of a JobSet.
namespace grapnel::api::keys::jobset {

inline constexpr std::string_view kJobSetName = "jobset.sigs.k8s.io/jobset-name";
inline constexpr std::string_view kJobSetUid = "jobset.sigs.k8s.io/jobset-uid";
inline constexpr std::string_view kReplicatedJobName = "jobset.sigs.k8s.io/replicatedjob-name";
inline constexpr std::string_view kReplicatedJobReplicas =
    "jobset.sigs.k8s.io/replicatedjob-replicas";
inline constexpr std::string_view kGlobalReplicas = "jobset.sigs.k8s.io/global-replicas";
inline constexpr std::string_view kRestartAttempt = "jobset.sigs.k8s.io/restart-attempt";
inline constexpr std::string_view kJobRestartAttempt = "jobset.sigs.k8s.io/job-restart-attempt";
inline constexpr std::string_view kJobIndex = "jobset.sigs.k8s.io/job-index";
inline constexpr std::string_view kJobKey = "jobset.sigs.k8s.io/job-key";
inline constexpr std::string_view kJobGlobalIndex = "jobset.sigs.k8s.io/job-global-index";
inline constexpr std::string_view kGroupName = "jobset.sigs.k8s.io/group-name";
inline constexpr std::string_view kGroupReplicas = "jobset.sigs.k8s.io/group-replicas";
inline constexpr std::string_view kJobGroupIndex = "jobset.sigs.k8s.io/job-group-index";
inline constexpr std::string_view kCoordinator = "jobset.sigs.k8s.io/coordinator";
inline constexpr std::string_view kPriority = "jobset.sigs.k8s.io/priority";

// Set by users on a JobSet or on a Job template.
inline constexpr std::string_view kExclusiveTopology =
    "alpha.jobset.sigs.k8s.io/exclusive-topology";
inline constexpr std::string_view kNodeSelectorStrategy = "alpha.jobset.sigs.k8s.io/node-selector";
inline constexpr std::string_view kNamespacedJob = "alpha.jobset.sigs.k8s.io/namespaced-job";
inline constexpr std::string_view kNoSchedule = "alpha.jobset.sigs.k8s.io/no-schedule";

// Ours. "true": Jobs and Service of a suspended JobSet are made at once, suspended, as the original
// controller does.
inline constexpr std::string_view kCreateSuspendedJobs = "grapnel.dev/create-suspended-jobs";
// How long a Job may stay in deletion before a restart stops waiting for it: "10m".
inline constexpr std::string_view kStuckDeletionTimeout = "grapnel.dev/stuck-deletion-timeout";
// "volcano": all pods are placed together; and the queue of the group.
inline constexpr std::string_view kGangScheduler = "grapnel.dev/gang-scheduler";
inline constexpr std::string_view kGangQueue = "scheduling.volcano.sh/queue-name";

}  // namespace grapnel::api::keys::jobset
