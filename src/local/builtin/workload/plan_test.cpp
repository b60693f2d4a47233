#include "local/builtin/workload/plan.h"

#include <gtest/gtest.h>

#include <deque>

namespace grapnel::local {
namespace {

const Time kNow = *parse_time("2026-01-01T12:00:00Z");

std::string writes_of(const runtime::Plan& plan) {
  std::string text;
  for (const auto& stage : plan.stages) {
    for (const auto& write : stage) {
      if (const auto* patch = std::get_if<runtime::Patch>(&write)) {
        const auto* replicas = at(patch->body, "spec", "replicas");
        const auto* owners = at(patch->body, "metadata", "ownerReferences");
        if (replicas != nullptr) {
          text += fmt::format("scale {} to {}; ", patch->target.key.name, int_or(replicas));
        } else if (owners != nullptr) {
          text += fmt::format("{} {}; ", owners->as_array().empty() ? "release" : "adopt",
                              patch->target.key.name);
        }
      } else if (const auto* create = std::get_if<runtime::Create>(&write)) {
        const Json object = create->object.make();
        text += fmt::format("create {} {}; ", create->kind->kind,
                            int_or(at(object, "spec", "replicas"), -1));
      } else {
        text += runtime::describe(write) + "; ";
      }
    }
  }
  return text;
}

// ---- ReplicaSets --------------------------------------------------------------------------------

struct Pod {
  std::string name;
  std::string phase = "Running";
  std::optional<int64_t> ready_for = 100;  // seconds
  bool assigned = true;
  bool deleting = false;
  std::string app = "a";
  bool orphan = false;
};

struct SetCase {
  std::string name;
  int64_t replicas = 2;
  int64_t min_ready = 0;
  std::vector<Pod> pods;
  std::string writes;
  std::string status;
  std::optional<int64_t> look_again;
};

class ReplicaSetPlan : public testing::TestWithParam<SetCase> {};

TEST_P(ReplicaSetPlan, Answers) {
  const SetCase& c = GetParam();
  ReplicaSet set{.replicas = c.replicas,
                 .min_ready_seconds = c.min_ready,
                 .selector = *parse_json(R"({"matchLabels":{"app":"a"}})"),
                 .pod_template = *parse_json(R"({"metadata":{"labels":{"app":"a"}}})")};
  set.meta.key = {Interned("ns"), "s"};
  set.meta.uid = kube::Uid("u");
  set.status = JsonObject();
  ReplicaSetObserved observed{.set = set};
  std::deque<WorkloadPod> pods;
  for (const auto& p : c.pods) {
    WorkloadPod& pod = pods.emplace_back();
    pod.meta.key = {Interned("ns"), p.name};
    pod.meta.uid = kube::Uid(p.name);
    pod.meta.labels = kube::StringMap({{Interned("app"), Interned(p.app)}});
    pod.meta.created = kNow - hours(1);
    if (p.deleting) pod.meta.deleted = kNow;
    pod.phase = p.phase;
    pod.assigned = p.assigned;
    if (p.ready_for) pod.ready_since = kNow - seconds(*p.ready_for);
    (p.orphan ? observed.orphans : observed.pods).push_back(&pod);
  }
  const auto p = plan(observed, kNow);
  EXPECT_EQ(writes_of(p), c.writes);
  ASSERT_TRUE(p.status);
  Json status = *at(p.status->body, "status");
  status.as_object().erase("observedGeneration");
  EXPECT_EQ(status, *parse_json(c.status));
  EXPECT_EQ(
      p.look_again ? std::optional(duration_cast<seconds>(*p.look_again).count()) : std::nullopt,
      c.look_again);
}

INSTANTIATE_TEST_SUITE_P(
    Table, ReplicaSetPlan,
    testing::Values(
        SetCase{.name = "CreatesWhatIsMissing",
                .pods = {{"p"}},
                .writes = "create Pod -1; ",
                .status = R"({"replicas":1,"fullyLabeledReplicas":1,"readyReplicas":1,)"
                          R"("availableReplicas":1})"},
        SetCase{.name = "EndedAndLeavingPodsDoNotCount",
                .replicas = 1,
                .pods = {{.name = "p", .phase = "Failed"}, {.name = "q", .deleting = true}},
                .writes = "create Pod -1; ",
                .status = R"({"replicas":0})"},
        SetCase{.name = "TheLeastUsefulGoFirst",
                .replicas = 1,
                .pods = {{"old"},
                         {.name = "new", .ready_for = 10},
                         {.name = "waiting", .phase = "Pending", .ready_for = {}}},
                .writes = "delete Pod ns/waiting; delete Pod ns/new; ",
                .status = R"({"replicas":3,"fullyLabeledReplicas":3,"readyReplicas":2,)"
                          R"("availableReplicas":2})"},
        SetCase{.name = "AvailableOnlyAfterAWhile",
                .replicas = 1,
                .min_ready = 30,
                .pods = {{.name = "p", .ready_for = 10}},
                .status = R"({"replicas":1,"fullyLabeledReplicas":1,"readyReplicas":1})",
                .look_again = 20},
        SetCase{.name = "AdoptsWhatItSelects",
                .replicas = 1,
                .pods = {{.name = "p", .orphan = true}, {.name = "q", .app = "b", .orphan = true}},
                .writes = "adopt p; ",
                .status = R"({"replicas":1,"fullyLabeledReplicas":1,"readyReplicas":1,)"
                          R"("availableReplicas":1})"},
        SetCase{.name = "ReleasesWhatItNoLongerSelects",
                .replicas = 1,
                .pods = {{.name = "p", .app = "b"}},
                .writes = "release p; create Pod -1; ",
                .status = R"({"replicas":0})"}),
    [](const auto& info) { return info.param.name; });

// ---- Deployments --------------------------------------------------------------------------------

struct Set {
  std::string image;
  int64_t wanted = 0;
  int64_t available = 0;
  int64_t revision = 1;
  std::optional<int64_t> existing = {};  // pods; as wanted unless given
};

struct DeploymentCase {
  std::string name;
  std::string spec = R"({"replicas":4})";
  std::vector<Set> sets;
  std::string writes;
  std::string progressing = "ReplicaSetUpdated";
  std::string available = "True";
};

class DeploymentPlan : public testing::TestWithParam<DeploymentCase> {};

TEST_P(DeploymentPlan, Answers) {
  const DeploymentCase& c = GetParam();
  const auto pod_template = [](std::string_view image, bool hash) {
    JsonObject labels{{"app", "a"}};
    if (hash) labels[kTemplateHash] = "x";
    return JsonObject{{"metadata", JsonObject{{"labels", labels}}},
                      {"spec", JsonObject{{"image", image}}}};
  };
  Json object = *parse_json(R"({"metadata":{"name":"d","namespace":"ns","uid":"u"}})");
  object.as_object()["spec"] = *parse_json(c.spec);
  object.as_object()["spec"].as_object()["template"] = pod_template("new", false);
  const auto deployment = decode_deployment(object);
  ASSERT_TRUE(deployment);
  DeploymentObserved observed{.deployment = *deployment};
  std::deque<ReplicaSet> sets;
  for (const auto& s : c.sets) {
    ReplicaSet& set = sets.emplace_back();
    set.meta.key = {Interned("ns"), s.image};
    set.meta.uid = kube::Uid(s.image);
    set.meta.annotations =
        kube::StringMap({{Interned(kRevision), Interned(std::to_string(s.revision))}});
    set.replicas = s.wanted;
    set.pod_template = pod_template(s.image, true);
    set.status = JsonObject{{"replicas", s.existing.value_or(s.wanted)},
                            {"availableReplicas", s.available},
                            {"readyReplicas", s.available}};
    observed.sets.push_back(&set);
  }
  const auto p = plan(observed, kNow);
  EXPECT_EQ(writes_of(p), c.writes);
  ASSERT_TRUE(p.status);
  const auto& conditions = at(p.status->body, "status", "conditions")->as_array();
  EXPECT_EQ(string_or(find(conditions[0], "status")), c.available);
  EXPECT_EQ(string_or(find(conditions[1], "reason")), c.progressing);
}

const std::string kOneByOne =
    R"({"replicas":4,"strategy":{"rollingUpdate":{"maxSurge":1,"maxUnavailable":0}}})";
const std::string kRecreate = R"({"replicas":4,"strategy":{"type":"Recreate"}})";

INSTANTIATE_TEST_SUITE_P(
    Table, DeploymentPlan,
    testing::Values(
        DeploymentCase{.name = "BeginsWithAllPods",
                       .writes = "create ReplicaSet 4; ",
                       .progressing = "NewReplicaSetCreated",
                       .available = "False"},
        DeploymentCase{
            .name = "IsComplete", .sets = {{"new", 4, 4}}, .progressing = "NewReplicaSetAvailable"},
        DeploymentCase{.name = "RollsWithASurge",
                       .sets = {{"old", 4, 4}},
                       .writes = "create ReplicaSet 1; ",
                       .progressing = "NewReplicaSetCreated"},
        DeploymentCase{.name = "OldOnesGoAsFarAsTheyMayBeMissed",
                       .sets = {{"old", 4, 4}, {"new", 1, 0, 2}},
                       .writes = "scale old to 3; "},
        DeploymentCase{.name = "WaitsForTheNewOne",
                       .spec = kOneByOne,
                       .sets = {{"old", 4, 4}, {"new", 1, 0, 2}}},
        DeploymentCase{.name = "GoesOnWhenTheNewOneIsAvailable",
                       .spec = kOneByOne,
                       .sets = {{"old", 4, 4}, {"new", 1, 1, 2}},
                       .writes = "scale old to 3; "},
        DeploymentCase{.name = "FillsTheRoom",
                       .spec = kOneByOne,
                       .sets = {{"old", 3, 3}, {"new", 1, 1, 2}},
                       .writes = "scale new to 2; "},
        DeploymentCase{.name = "BrokenOldPodsGoFirst",
                       .spec = kOneByOne,
                       .sets = {{"broken", 2, 0}, {"old", 3, 3, 2}, {"new", 0, 0, 3}},
                       .writes = "scale broken to 1; ",
                       .available = "False"},
        DeploymentCase{.name = "ScalesUp",
                       .sets = {{"new", 2, 2}},
                       .writes = "scale new to 4; ",
                       .available = "False"},
        DeploymentCase{.name = "ScalesDown",
                       .spec = R"({"replicas":1})",
                       .sets = {{"new", 4, 4}},
                       .writes = "scale new to 1; "},
        DeploymentCase{.name = "RecreateEndsTheOldFirst",
                       .spec = kRecreate,
                       .sets = {{"old", 4, 4}},
                       .writes = "scale old to 0; "},
        DeploymentCase{.name = "RecreateWaitsUntilTheyAreGone",
                       .spec = kRecreate,
                       .sets = {{"old", 0, 0, 1, 2}}},
        DeploymentCase{.name = "RecreateThenBegins",
                       .spec = kRecreate,
                       .sets = {{"old", 0, 0}},
                       .writes = "create ReplicaSet 4; ",
                       .progressing = "NewReplicaSetCreated"},
        DeploymentCase{.name = "PausedOnlyScales",
                       .spec = R"({"replicas":4,"paused":true})",
                       .sets = {{"old", 2, 2}},
                       .writes = "scale old to 4; ",
                       .progressing = "DeploymentPaused",
                       .available = "False"},
        DeploymentCase{.name = "ForgetsTheOldestRevisions",
                       .spec = R"({"replicas":1,"revisionHistoryLimit":1})",
                       .sets = {{"a", 0, 0, 1}, {"b", 0, 0, 2}, {"c", 0, 0, 3}, {"new", 1, 1, 4}},
                       .writes = "delete ReplicaSet ns/a; delete ReplicaSet ns/b; ",
                       .progressing = "NewReplicaSetAvailable"}),
    [](const auto& info) { return info.param.name; });

TEST(DeploymentPlan, AnOldSetThatIsNewAgainGetsANewRevision) {
  ReplicaSet old{.replicas = 0, .pod_template = JsonObject{{"spec", 2}}, .status = JsonObject()};
  old.meta.key = {Interned("ns"), "two"};
  old.meta.annotations = kube::StringMap({{Interned(kRevision), Interned("2")}});
  ReplicaSet again = old;
  again.pod_template = JsonObject{{"spec", 1}};
  again.meta.key.name = "one";
  again.meta.annotations = kube::StringMap({{Interned(kRevision), Interned("1")}});
  Deployment deployment{.pod_template = JsonObject{{"spec", 1}}, .status = JsonObject()};
  deployment.meta.key = {Interned("ns"), "d"};
  const auto p = plan(DeploymentObserved{.deployment = deployment, .sets = {&old, &again}}, kNow);
  std::string revisions;
  for (const auto& write : p.stages.at(0)) {
    const auto* patch = std::get_if<runtime::Patch>(&write);
    ASSERT_NE(patch, nullptr);
    const auto* value = at(patch->body, "metadata", "annotations", kRevision);
    if (value != nullptr) {
      revisions += fmt::format("{}={} ", patch->target.key.name, string_or(value));
    }
  }
  EXPECT_EQ(revisions, "one=3 d=3 ");
}

}  // namespace
}  // namespace grapnel::local
