#include "operators/jobset/placement.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "operators/jobset/world_test.h"

namespace grapnel::jobset {
namespace {

using namespace testing;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr std::string_view kAnnotations = R"("jobset.sigs.k8s.io/jobset-name":"train",
    "alpha.jobset.sigs.k8s.io/exclusive-topology":"rack")";

Json pod_object(std::string_view annotations, std::string_view spec = "{}") {
  return json(fmt::format(R"({{"metadata":{{"name":"p","labels":{{
      "jobset.sigs.k8s.io/job-key":"k"}},"annotations":{{{}}}}},"spec":{}}})",
                          annotations, spec));
}

TEST(AdmittedPod, LeavesOthersAlone) {
  const Json pod = pod_object(R"("a":"b")", R"({"priority":5})");
  EXPECT_TRUE(equal(admitted_pod(pod), pod));
}

TEST(AdmittedPod, IsLabelledWithItsPriority) {
  const Json pod =
      admitted_pod(pod_object(R"("jobset.sigs.k8s.io/jobset-name":"train")", R"({"priority":5})"));
  EXPECT_EQ(string_or(at(pod, "metadata", "labels", keys::kPriority)), "5");
  EXPECT_EQ(at(pod, "spec", "affinity"), nullptr);
}

TEST(AdmittedPod, LeaderIsPlacedWithItsJobAndAwayFromOthers) {
  const Json pod = admitted_pod(
      pod_object(std::string(kAnnotations) + R"(,"batch.kubernetes.io/job-completion-index":"0")",
                 R"({"priority":0,"affinity":{"podAffinity":{
          "requiredDuringSchedulingIgnoredDuringExecution":[{"own":1}]}}})"));
  EXPECT_TRUE(equal(*at(pod, "spec", "affinity"), json(R"({
      "podAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":[{"own":1},{
        "labelSelector":{"matchExpressions":[
          {"key":"jobset.sigs.k8s.io/job-key","operator":"In","values":["k"]}]},
        "topologyKey":"rack","namespaceSelector":{}}]},
      "podAntiAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":[{
        "labelSelector":{"matchExpressions":[
          {"key":"jobset.sigs.k8s.io/job-key","operator":"Exists"},
          {"key":"jobset.sigs.k8s.io/job-key","operator":"NotIn","values":["k"]},
          {"key":"jobset.sigs.k8s.io/priority","operator":"In","values":["0"]}]},
        "topologyKey":"rack","namespaceSelector":{}}]}})")))
      << to_pretty_text(pod);
  EXPECT_EQ(at(pod, "spec", "schedulingGates"), nullptr);
}

TEST(AdmittedPod, FollowerWaitsForItsLeader) {
  const Json pod = admitted_pod(
      pod_object(std::string(kAnnotations) + R"(,"batch.kubernetes.io/job-completion-index":"1")"));
  EXPECT_EQ(to_text(*at(pod, "spec", "schedulingGates")),
            R"([{"name":"jobset.sigs.k8s.io/follows-leader"}])");
  EXPECT_EQ(at(pod, "spec", "affinity"), nullptr);
}

TEST(AdmittedPod, NodeSelectorStrategyNeedsNothing) {
  const Json pod =
      pod_object(std::string(kAnnotations) + R"(,"alpha.jobset.sigs.k8s.io/node-selector":"true")");
  EXPECT_TRUE(equal(admitted_pod(pod), pod));
}

// A pod of a Job, as a fluent value.
class pod {
 public:
  pod(std::string_view name, int index, std::string_view job_uid = "job-1") {
    pod_.meta.key = {Interned("ml"), std::string(name)};
    pod_.meta.uid = kube::Uid(name);
    pod_.meta.labels = kube::StringMap(
        {{Interned("batch.kubernetes.io/job-completion-index"), Interned(std::to_string(index))}});
    pod_.meta.annotations = kube::StringMap(
        {{Interned("alpha.jobset.sigs.k8s.io/exclusive-topology"), Interned("rack")}});
    pod_.meta.owners.push_back({.kind = Interned("Job"),
                                .name = "train-w-0",
                                .uid = kube::Uid(job_uid),
                                .controller = true});
  }
  pod& on(std::string_view node) {
    pod_.node = Interned(node);
    return *this;
  }
  pod& gated() {
    pod_.gates.emplace_back(kFollowerGate);
    return *this;
  }
  pod& to(std::string_view rack) {
    pod_.node_selector = kube::StringMap({{Interned("rack"), Interned(rack)}});
    return *this;
  }
  pod& phase(api::Pod::Phase phase) {
    pod_.phase = phase;
    return *this;
  }
  pod& deleting(Duration ago = seconds(1)) {
    pod_.meta.deleted = kNow - ago;
    return *this;
  }
  pod& marked() {
    pod_.conditions.push_back({.type = Interned("DisruptionTarget"), .is_true = true});
    return *this;
  }
  const api::Pod& get() const { return pod_; }

 private:
  api::Pod pod_;
};

// Nodes a1 and a2 stand in rack A, b1 in rack B; b1 does not answer.
const api::Node* find_node(std::string_view name) {
  static const auto nodes = [] {
    std::map<std::string, api::Node, std::less<>> all;
    for (const std::string_view n : {"a1", "a2", "b1"}) {
      all[std::string(n)].meta.labels =
          kube::StringMap({{Interned("rack"), Interned(n[0] == 'a' ? "A" : "B")}});
      all[std::string(n)].ready = n != "b1";
    }
    return all;
  }();
  const auto found = nodes.find(name);
  return found == nodes.end() ? nullptr : &found->second;
}

std::vector<std::string> place(const std::vector<pod>& pods) {
  std::vector<const api::Pod*> pointers;
  for (const auto& p : pods) pointers.push_back(&p.get());
  return lines_of(place_followers(pointers, find_node, kNow));
}

std::string lets_go(std::string_view name, std::string_view rack) {
  return fmt::format(R"(patch {} {{"spec":{{"nodeSelector":{{"rack":"{}"}},"schedulingGates":)"
                     R"([{{"$patch":"delete","name":"jobset.sigs.k8s.io/follows-leader"}}]}}}})",
                     name, rack);
}

using Phase = api::Pod::Phase;

TEST(Placement, FollowersWaitUntilTheLeaderHasANode) {
  EXPECT_THAT(place({pod("l", 0), pod("f", 1).gated()}), IsEmpty());
}

TEST(Placement, FollowersGoToTheRackOfTheLeader) {
  EXPECT_THAT(place({pod("l", 0).on("a1"), pod("f", 1).gated(), pod("g", 2).gated()}),
              ElementsAre(lets_go("f", "A"), lets_go("g", "A")));
}

TEST(Placement, EachJobFollowsItsOwnLeader) {
  EXPECT_THAT(place({pod("l", 0).on("a1"), pod("m", 0, "job-2").on("b1"), pod("f", 1).gated(),
                     pod("g", 1, "job-2").gated()}),
              ElementsAre(lets_go("f", "A"), lets_go("g", "B")));
}

TEST(Placement, NobodyFollowsALeaderThatIsEnding) {
  EXPECT_THAT(place({pod("l", 0).on("a1").deleting(), pod("f", 1).gated()}), IsEmpty());
}

TEST(Placement, AReplacementDecidesOverALeaderThatFailed) {
  EXPECT_THAT(place({pod("l", 0).on("a1").phase(Phase::kFailed), pod("m", 0), pod("f", 1).gated()}),
              IsEmpty());
  EXPECT_THAT(place({pod("l", 0).on("a1").phase(Phase::kFailed), pod("m", 0).on("b1"),
                     pod("f", 1).gated()}),
              ElementsAre(lets_go("f", "B")));
}

TEST(Placement, NobodyWaitsForALeaderThatHasEnded) {
  for (const auto phase : {Phase::kSucceeded, Phase::kFailed}) {
    EXPECT_THAT(place({pod("l", 0).on("a1").phase(phase), pod("f", 1).gated()}),
                ElementsAre(lets_go("f", "A")));
  }
}

TEST(Placement, FollowersInAnotherRackAreDeletedAsDisrupted) {
  const auto lines = place({pod("l", 0).on("b1"), pod("f", 1).to("A").on("a1"),
                            pod("g", 2).to("A").marked(), pod("h", 3).to("B")});
  ASSERT_EQ(lines.size(), 4U);
  EXPECT_THAT(lines[0], ::testing::AllOf(::testing::StartsWith("patch f/status"),
                                         ::testing::HasSubstr("ExclusivePlacementViolation")));
  EXPECT_EQ(lines[1], "then");
  EXPECT_EQ(lines[2], "delete Pod f in the background");
  EXPECT_EQ(lines[3], "delete Pod g in the background");
}

TEST(Placement, WhatHasEndedIsLeftAlone) {
  EXPECT_THAT(place({pod("l", 0).on("b1"), pod("f", 1).to("A").phase(Phase::kSucceeded),
                     pod("g", 2).to("A").deleting()}),
              IsEmpty());
}

TEST(Placement, AnUnknownNodeDecidesNothing) {
  EXPECT_THAT(place({pod("l", 0).on("nowhere"), pod("f", 1).gated()}), ElementsAre("again in 5s"));
}

// BlockingRecreate: pods on lost nodes are deleted by force, others are waited for.
std::vector<std::string> block(const std::vector<pod>& pods, std::string_view metadata = "") {
  World world{.jobset = make_jobset(
                  fmt::format(R"({{"replicatedJobs":[{}],"failurePolicy":{{"maxRestarts":2,
                  "restartStrategy":"BlockingRecreate"}}}})",
                              replicated("w", 1)),
                  R"({"restarts":1,"restartsCountTowardsMax":1})", metadata)};
  world.jobs = {job("w", 0).deleting_since(hours(1)).get()};
  world.jobs[0].meta.uid = kube::Uid("job-1");
  Observed observed = world.observed();
  for (const auto& p : pods) observed.pods.push_back(&p.get());
  observed.find_node = find_node;
  EXPECT_TRUE(needs_pods(world.jobset));
  return lines_of(plan(observed, kNow));
}

TEST(StuckPods, OnALostNodeAreDeletedByForce) {
  EXPECT_THAT(
      block({pod("p", 0).on("b1").deleting(hours(1)), pod("q", 1).on("a1").deleting(hours(1)),
             pod("r", 2).on("gone").deleting(hours(1))}),
      ElementsAre("delete Pod p in the background", "delete Pod r in the background",
                  "again in 30s"));
}

// Its node may be seen to be lost later, and no event of the pod says so.
TEST(StuckPods, OnANodeThatAnswersAreLookedAtAgain) {
  EXPECT_THAT(block({pod("q", 1).on("a1").deleting(hours(1))}), ElementsAre("again in 30s"));
  EXPECT_THAT(block({pod("q", 1).on("a1").deleting(seconds(30))}), ElementsAre("again in 300s"));
}

TEST(StuckPods, AreLookedAtAsOftenAsTheirTimeoutSays) {
  EXPECT_THAT(block({pod("q", 1).on("a1").deleting(hours(1))},
                    R"(,"annotations":{"grapnel.dev/stuck-deletion-timeout":"5s"})"),
              ElementsAre("again in 5s"));
}

TEST(StuckPods, NoneIsStuckThatIsNotDeletedOrNeverHadANode) {
  EXPECT_THAT(block({pod("p", 0).on("b1")}), IsEmpty());
  EXPECT_THAT(block({pod("p", 0).deleting(hours(1))}), IsEmpty());
}

TEST(StuckPods, AreGivenTime) {
  EXPECT_THAT(block({pod("p", 0).on("b1").deleting(seconds(30))}), ElementsAre("again in 300s"));
}

TEST(StuckPods, OfTheNewRunAreNotTouched) {
  EXPECT_THAT(block({pod("p", 0, "job-2").on("b1").deleting(hours(1))}), IsEmpty());
}

// Recreate: train-w-0 was deleted and is to be made again.
std::vector<std::string> recreate(const std::vector<pod>& pods) {
  World world{.jobset = make_jobset(
                  fmt::format(R"({{"replicatedJobs":[{}],"failurePolicy":{{"maxRestarts":2}}}})",
                              replicated("w", 2)),
                  R"({"restarts":1,"restartsCountTowardsMax":1,"replicatedJobsStatus":[{"name":"w",
                  "ready":0,"succeeded":0,"failed":0,"active":1,"suspended":0}]})")};
  world.jobs = {job("w", 1).attempt(1).running().get()};
  Observed observed = world.observed();
  for (const auto& p : pods) observed.pods.push_back(&p.get());
  EXPECT_TRUE(needs_pods(world.jobset));
  return lines_of(plan(observed, kNow));
}

TEST(PodsOfAJobThatIsGone, AreWaitedForBeforeItIsMadeAgain) {
  EXPECT_THAT(recreate({pod("p", 0).on("a1")}), IsEmpty()) << "nobody has begun to delete it";
  EXPECT_THAT(recreate({pod("p", 0).on("a1").deleting(seconds(30))}), ElementsAre("again in 300s"));
  EXPECT_THAT(recreate({}), ElementsAre("create Job train-w-0"));
}

TEST(PodsOfAJobThatIsGone, AreNotWaitedForOnceTheyHaveEnded) {
  EXPECT_THAT(recreate({pod("p", 0).on("a1").phase(Phase::kFailed)}),
              ElementsAre("create Job train-w-0"));
}

TEST(PodsOfAJobThatIsGone, AreNotWaitedForIfTheyNeverHadANode) {
  EXPECT_THAT(recreate({pod("p", 0)}), ElementsAre("create Job train-w-0"));
}

TEST(PodsOfAJobThatIsGone, AreNotWaitedForForEver) {
  EXPECT_THAT(recreate({pod("p", 0).on("a1").deleting(seconds(330))}),
              ElementsAre("create Job train-w-0"));
}

}  // namespace
}  // namespace grapnel::jobset
