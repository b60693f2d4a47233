#include "operators/jobset/job_builder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "operators/jobset/gang.h"
#include "operators/jobset/world_test.h"

namespace grapnel::jobset {
namespace {

using namespace testing;

// The text at a path of keys, as the API shows it.
template <class... Keys>
std::string text(const Json& object, Keys... keys) {
  const Json* value = at(object, keys...);
  return value == nullptr ? "(none)" : to_text(*value);
}

// Every label of a child is an annotation too, and its pods carry the same.
constexpr std::string_view kLabels = R"(
    "jobset.sigs.k8s.io/jobset-name":"train",
    "jobset.sigs.k8s.io/jobset-uid":"8c5b6d0e-0000-4000-8000-000000000001",
    "jobset.sigs.k8s.io/replicatedjob-name":"w",
    "jobset.sigs.k8s.io/restart-attempt":"2",
    "jobset.sigs.k8s.io/replicatedjob-replicas":"3",
    "jobset.sigs.k8s.io/global-replicas":"4",
    "jobset.sigs.k8s.io/job-index":"1",
    "jobset.sigs.k8s.io/job-key":"1658e33e9e79d838beff929d2bd70f0dc00d5fce",
    "jobset.sigs.k8s.io/job-global-index":"2",
    "jobset.sigs.k8s.io/group-name":"g",
    "jobset.sigs.k8s.io/group-replicas":"3",
    "jobset.sigs.k8s.io/job-group-index":"1",
    "jobset.sigs.k8s.io/coordinator":"train-w-1-3.train")";

TEST(JobBuilder, CarriesTheTemplateWholeAndAddsLabels) {
  const auto jobset = make_jobset(R"({"replicatedJobs":[
      {"name":"lead","replicas":1,"template":{"spec":{"template":{"spec":{}}}}},
      {"name":"w","groupName":"g","replicas":3,"template":{
        "metadata":{"name":"ignored","labels":{"mine":"1"},"annotations":{"note":"2"}},
        "spec":{"parallelism":4,"completions":4,"backoffLimit":0,"futureField":{"x":[1]},
          "template":{"metadata":{"labels":{"app":"a"}},
            "spec":{"restartPolicy":"Never","hostNetwork":true,
                    "containers":[{"name":"main","image":"i"}]}}}}}],
      "coordinator":{"replicatedJob":"w","jobIndex":1,"podIndex":3}})",
                                  R"({"restarts":2})");
  const Json expected = json(fmt::format(R"({{
    "apiVersion":"batch/v1","kind":"Job",
    "metadata":{{
      "name":"train-w-1","namespace":"ml",
      "ownerReferences":[{{"apiVersion":"jobset.x-k8s.io/v1alpha2","kind":"JobSet","name":"train",
        "uid":"8c5b6d0e-0000-4000-8000-000000000001","controller":true,
        "blockOwnerDeletion":true}}],
      "labels":{{"mine":"1",{0}}},
      "annotations":{{"note":"2",{0}}}}},
    "spec":{{
      "parallelism":4,"completions":4,"backoffLimit":0,"futureField":{{"x":[1]}},
      "completionMode":"Indexed","suspend":false,
      "template":{{
        "metadata":{{"labels":{{"app":"a","jobset.sigs.k8s.io/priority":"0",{0}}},
                    "annotations":{{{0}}}}},
        "spec":{{"restartPolicy":"Never","hostNetwork":true,"subdomain":"train",
                "containers":[{{"name":"main","image":"i"}}]}}}}}}}})",
                                         kLabels));
  const Json job = JobBuilder(jobset, jobset.spec.replicated_jobs[1]).build(1);
  EXPECT_TRUE(equal(job, expected)) << to_pretty_text(job);
}

Json build(std::string_view spec, std::string_view metadata = "") {
  const auto jobset = make_jobset(spec, "{}", metadata);
  return JobBuilder(jobset, jobset.spec.replicated_jobs.back()).build(0);
}

const std::string kPlain = fmt::format(R"({{"replicatedJobs":[{}]}})", replicated("w", 1));

TEST(JobBuilder, SetsTheDefaultsThatJobsNeed) {
  const Json job = build(kPlain);
  EXPECT_EQ(text(job, "spec", "completionMode"), "\"Indexed\"");
  EXPECT_EQ(text(job, "spec", "template", "spec", "restartPolicy"), "\"OnFailure\"");
  EXPECT_EQ(text(job, "spec", "template", "spec", "subdomain"), "\"train\"");
  EXPECT_EQ(text(job, "metadata", "labels", keys::kJobRestartAttempt), "(none)");
}

// What a pod's label says of its priority; the rest is for admission to find out.
TEST(JobBuilder, LabelsPodsWithAPriorityThatIsKnown) {
  struct Row {
    std::string_view name;
    std::string_view pod_template;
    std::string_view expected;
  };
  for (
      const Row& row : {
          Row{"no class", R"({"spec":{}})", "\"0\""},
          Row{"a class", R"({"spec":{"priorityClassName":"high"}})", "(none)"},
          Row{"placed exclusively",
              R"({"metadata":{"annotations":{"alpha.jobset.sigs.k8s.io/exclusive-topology":"rack"}}})",
              "(none)"},
          Row{"placed by the nodes' labels",
              R"({"metadata":{"annotations":{"alpha.jobset.sigs.k8s.io/node-selector":"true"}}})",
              "(none)"},
          Row{"labelled by its author",
              R"({"metadata":{"labels":{"jobset.sigs.k8s.io/priority":"7"}}})", "\"7\""},
      }) {
    const Json job = build(fmt::format(
        R"({{"replicatedJobs":[{{"name":"w","replicas":1,"template":{{"spec":{{"template":{}}}}}}}]}})",
        row.pod_template));
    EXPECT_EQ(text(job, "spec", "template", "metadata", "labels", keys::kPriority), row.expected)
        << row.name;
  }
}

TEST(JobBuilder, HasNoSubdomainWithoutDnsHostnames) {
  const Json job = build(fmt::format(
      R"({{"replicatedJobs":[{}],"network":{{"enableDNSHostnames":false}}}})", replicated("w", 1)));
  EXPECT_EQ(text(job, "spec", "template", "spec", "subdomain"), "(none)");
}

TEST(JobBuilder, CountsWithinTheGroup) {
  const Json job = build(fmt::format(R"({{"replicatedJobs":[{},{},{}]}})",
                                     replicated("a", 2, R"(,"groupName":"g")"), replicated("b", 3),
                                     replicated("c", 4, R"(,"groupName":"g")")));
  EXPECT_EQ(text(job, "metadata", "labels", keys::kJobGlobalIndex), "\"5\"");
  EXPECT_EQ(text(job, "metadata", "labels", keys::kJobGroupIndex), "\"2\"");
  EXPECT_EQ(text(job, "metadata", "labels", keys::kGlobalReplicas), "\"9\"");
  EXPECT_EQ(text(job, "metadata", "labels", keys::kGroupReplicas), "\"6\"");
}

TEST(JobBuilder, PassesExclusivePlacementOfTheJobSetOn) {
  const Json job =
      build(kPlain, R"(,"annotations":{"alpha.jobset.sigs.k8s.io/exclusive-topology":"rack"})");
  EXPECT_EQ(text(job, "metadata", "annotations", keys::kExclusiveTopology), "\"rack\"");
  EXPECT_EQ(text(job, "metadata", "labels", keys::kExclusiveTopology), "(none)");
  EXPECT_EQ(text(job, "spec", "template", "metadata", "annotations", keys::kExclusiveTopology),
            "\"rack\"");
  EXPECT_EQ(text(job, "spec", "template", "spec", "nodeSelector"), "(none)");
}

TEST(JobBuilder, SelectsNodesByJobWithThatStrategy) {
  const Json job = build(R"({"replicatedJobs":[{"name":"w","template":{
      "metadata":{"annotations":{"alpha.jobset.sigs.k8s.io/exclusive-topology":"rack",
                                 "alpha.jobset.sigs.k8s.io/node-selector":"true"}},
      "spec":{"template":{"spec":{"nodeSelector":{"a":"b"},"tolerations":[{"key":"k"}],
              "containers":[{"name":"c"}]}}}}}]})");
  EXPECT_EQ(text(job, "spec", "template", "spec", "nodeSelector"),
            R"({"a":"b","alpha.jobset.sigs.k8s.io/namespaced-job":"ml_train-w-0"})");
  EXPECT_EQ(text(job, "spec", "template", "spec", "tolerations"),
            R"([{"key":"k"},{"key":"alpha.jobset.sigs.k8s.io/no-schedule","operator":"Exists",)"
            R"("effect":"NoSchedule"}])");
  EXPECT_EQ(text(job, "spec", "template", "metadata", "annotations", keys::kNodeSelectorStrategy),
            "\"true\"");
}

TEST(JobBuilder, AddsTheVolumesThatItsContainersMount) {
  const Json job = build(R"({"volumeClaimPolicies":[{"templates":[
      {"metadata":{"name":"data"}},{"metadata":{"name":"other"}},{"metadata":{"name":"init"}}]}],
      "replicatedJobs":[{"name":"w","template":{"spec":{"template":{"spec":{
        "volumes":[{"name":"own","emptyDir":{}}],
        "initContainers":[{"name":"i","volumeMounts":[{"name":"init","mountPath":"/i"}]}],
        "containers":[{"name":"c","volumeMounts":[{"name":"data","mountPath":"/d"}]}]}}}}}]})");
  EXPECT_EQ(text(job, "spec", "template", "spec", "volumes"),
            R"([{"name":"own","emptyDir":{}},)"
            R"({"name":"data","persistentVolumeClaim":{"claimName":"data-train"}},)"
            R"({"name":"init","persistentVolumeClaim":{"claimName":"init-train"}}])");
}

TEST(Gang, AllPodsThatStartAtOnceAreOneGroup) {
  const auto jobset = make_jobset(
      R"({"replicatedJobs":[
        {"name":"a","replicas":2,"template":{"spec":{"parallelism":3,"completions":3,"template":{
          "spec":{"priorityClassName":"high",
                  "containers":[{"name":"c","resources":{"requests":{"cpu":"500m"},
                                 "limits":{"cpu":"1","memory":"1Gi","nvidia.com/gpu":1}}}]}}}}},
        {"name":"b","replicas":1,"dependsOn":[{"name":"a","status":"Ready"}],"template":{"spec":{
          "template":{"spec":{"containers":[{"name":"c"}]}}}}}]})",
      "{}",
      R"(,"annotations":{"grapnel.dev/gang-scheduler":"volcano",
                         "scheduling.volcano.sh/queue-name":"q"})");
  ASSERT_TRUE(wants_gang(jobset));
  EXPECT_TRUE(equal(
      *at(pod_group(jobset).object, "spec"),
      json(
          R"({"minMember":6,"queue":"q","priorityClassName":"high","minResources":{"cpu":"3","memory":"6Gi",
                             "nvidia.com/gpu":"6"}})")))
      << to_text(pod_group(jobset).object);
  const Json job = JobBuilder(jobset, jobset.spec.replicated_jobs[0]).build(0);
  EXPECT_EQ(text(job, "spec", "template", "spec", "schedulerName"), "\"volcano\"");
  const Json& annotations = *at(job, "spec", "template", "metadata", "annotations");
  EXPECT_EQ(text(annotations, "scheduling.k8s.io/group-name"), "\"train\"");
  EXPECT_EQ(text(annotations, "scheduling.volcano.sh/group-name"), "\"train\"");
  EXPECT_EQ(text(annotations, "volcano.sh/task-spec"), "\"a\"");
}

}  // namespace
}  // namespace grapnel::jobset
