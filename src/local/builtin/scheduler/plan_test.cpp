#include "local/builtin/scheduler/plan.h"

#include <gtest/gtest.h>

#include <deque>

namespace grapnel::local {
namespace {

const Time kNow = *parse_time("2026-01-01T00:10:00Z");

Json json(std::string_view text) {
  return parse_json(text).value();
}

std::string pod(std::string_view name, std::string_view spec, std::string_view status = "{}") {
  return fmt::format(R"({{"metadata":{{"name":"{}","namespace":"ns","uid":"u-{}",
      "creationTimestamp":"2026-01-01T00:00:00Z"}},"spec":{},"status":{}}})",
                     name, name, spec, status);
}

std::string cpu(std::string_view amount, std::string_view more = "") {
  return fmt::format(R"({{"containers":[{{"resources":{{"requests":{{"cpu":"{}"}}}}}}]{}}})",
                     amount, more);
}

std::string node(std::string_view name, std::string_view allocatable,
                 std::string_view labels = "{}", std::string_view spec = "{}") {
  return fmt::format(R"({{"metadata":{{"name":"{}","labels":{}}},"spec":{},
      "status":{{"allocatable":{},"conditions":[{{"type":"Ready","status":"True"}}]}}}})",
                     name, labels, spec, allocatable);
}

std::string going(std::string pod) {
  return pod.replace(pod.find(R"("uid")"), 0, R"("deletionTimestamp":"2026-01-01T00:09:00Z",)");
}

struct Case {
  std::string name;
  std::vector<std::string> nodes;
  std::vector<std::string> pods;
  std::vector<std::string> answer;  // "a → n1", "b: message", "disrupt c", "delete c"
  std::map<std::string, ClaimState> claims = {};
};

class SchedulerPlan : public testing::TestWithParam<Case> {};

TEST_P(SchedulerPlan, Answers) {
  std::deque<SchedulerNode> nodes;
  std::deque<SchedulerPod> pods;
  SchedulerObserved observed;
  for (const auto& text : GetParam().nodes) {
    nodes.push_back(decode_scheduler_node(json(text)).value());
    observed.nodes.push_back(&nodes.back());
  }
  for (const auto& text : GetParam().pods) {
    pods.push_back(decode_scheduler_pod(json(text)).value());
    observed.pods.push_back(&pods.back());
  }
  for (const auto& [name, state] : GetParam().claims) {
    observed.claims[{Interned("ns"), name}] = state;
  }
  const auto p = plan(observed, kNow);
  std::vector<std::string> answer;
  for (const auto& stage : p.stages) {
    for (const auto& write : stage) {
      if (const auto* create = std::get_if<runtime::Create>(&write)) {
        const Json binding = create->object.make();
        answer.push_back(fmt::format("{} → {}", create->object.key().name,
                                     string_or(at(binding, "target", "name"))));
      } else if (const auto* gone = std::get_if<runtime::Delete>(&write)) {
        answer.push_back("delete " + gone->target.key.name);
      } else {
        const auto& patch = std::get<runtime::Patch>(write);
        const auto& conditions = at(patch.body, "status", "conditions")->as_array();
        if (string_or(find(conditions[0], "type")) == "DisruptionTarget") {
          answer.push_back("disrupt " + patch.target.key.name);
          continue;
        }
        answer.push_back(fmt::format("{}: {}", patch.target.key.name,
                                     string_or(find(conditions[0], "message"))));
      }
    }
  }
  EXPECT_EQ(answer, GetParam().answer);
}

const std::string kClaims =
    R"(,"volumes":[{"name":"v","persistentVolumeClaim":{"claimName":"data"}}])";
const std::string kTwoCpus = R"({"cpu":"2","memory":"8Gi"})";

INSTANTIATE_TEST_SUITE_P(
    Table, SchedulerPlan,
    testing::Values(
        Case{"BindsWhatFits", {node("n", kTwoCpus)}, {pod("a", cpu("2"))}, {"a → n"}},
        Case{"MakesRoomForTheMoreImportant",
             {node("n", kTwoCpus)},
             {pod("low", cpu("1", R"(,"nodeName":"n","priority":1)")),
              pod("lower", cpu("1", R"(,"nodeName":"n","priority":0)")),
              pod("high", cpu("1", R"(,"priority":9)"))},
             {"high: 0/1 nodes are available: 1 Insufficient cpu.", "disrupt lower",
              "delete lower"}},
        Case{"OfEqualsTheYoungestGoes",
             {node("n", kTwoCpus)},
             {pod("a", cpu("1", R"(,"nodeName":"n")")), pod("b", cpu("1", R"(,"nodeName":"n")")),
              pod("high", cpu("1", R"(,"priority":9)"))},
             {"high: 0/1 nodes are available: 1 Insufficient cpu.", "disrupt b", "delete b"}},
        Case{"NobodyGoesInVain",
             {node("n", kTwoCpus)},
             {pod("a", cpu("1", R"(,"nodeName":"n")")),
              pod("b", cpu("1", R"(,"nodeName":"n","priority":9)")),
              pod("high", cpu("2", R"(,"priority":9)"))},
             {"high: 0/1 nodes are available: 1 Insufficient cpu."}},
        Case{"NobodyGoesWhoDoesNotHelp",
             {node("n", kTwoCpus)},
             {pod("small", cpu("0", R"(,"nodeName":"n","priority":0)")),
              pod("big", cpu("2", R"(,"nodeName":"n","priority":1)")),
              pod("high", cpu("2", R"(,"priority":9)"))},
             {"high: 0/1 nodes are available: 1 Insufficient cpu.", "disrupt big", "delete big"}},
        Case{"SomePreemptNobody",
             {node("n", kTwoCpus)},
             {pod("a", cpu("2", R"(,"nodeName":"n")")),
              pod("high", cpu("2", R"(,"priority":9,"preemptionPolicy":"Never")"))},
             {"high: 0/1 nodes are available: 1 Insufficient cpu."}},
        Case{"WhatIsBeingFreedIsKept",
             {node("n", kTwoCpus)},
             {going(pod("gone-soon", cpu("1", R"(,"nodeName":"n")"))),
              pod("high", cpu("2", R"(,"priority":9)")), pod("low", cpu("1", R"(,"priority":1)"))},
             {"high: 0/1 nodes are available: 1 Insufficient cpu.",
              "low: 0/1 nodes are available: 1 Insufficient cpu."}},
        Case{"WaitsForItsClaim",
             {node("n", kTwoCpus)},
             {pod("a", cpu("1", kClaims)), pod("b", cpu("1", kClaims)), pod("c", cpu("1"))},
             {"a: 0/1 nodes are available: persistentvolumeclaim \"data\" not found.",
              "b: 0/1 nodes are available: persistentvolumeclaim \"data\" not found.", "c → n"}},
        Case{"OfAnUnboundClaimItSaysSo",
             {node("n", kTwoCpus)},
             {pod("a", cpu("1", kClaims))},
             {"a: 0/1 nodes are available: pod has unbound immediate PersistentVolumeClaims."},
             {{"data", ClaimState::kUnbound}}},
        Case{"OfAGoingClaimToo",
             {node("n", kTwoCpus)},
             {pod("a", cpu("1", kClaims))},
             {"a: 0/1 nodes are available: persistentvolumeclaim \"data\" is being deleted."},
             {{"data", ClaimState::kGoing}}},
        Case{"WithABoundClaimItRuns",
             {node("n", kTwoCpus)},
             {pod("a", cpu("1", kClaims))},
             {"a → n"},
             {{"data", ClaimState::kBound}}},
        Case{"CountsWhatItBindsItself",
             {node("n", kTwoCpus)},
             {pod("a", cpu("1500m")), pod("b", cpu("1"))},
             {"a → n", "b: 0/1 nodes are available: 1 Insufficient cpu."}},
        Case{"CountsWhatRunsAlready",
             {node("n", kTwoCpus)},
             {pod("a", cpu("2", R"(,"nodeName":"n")"), R"({"phase":"Running"})"),
              pod("b", cpu("1"))},
             {"b: 0/1 nodes are available: 1 Insufficient cpu."}},
        Case{"FinishedPodsTakeNothing",
             {node("n", kTwoCpus)},
             {pod("a", cpu("2", R"(,"nodeName":"n")"), R"({"phase":"Succeeded"})"),
              pod("b", cpu("1"))},
             {"b → n"}},
        Case{"TheMoreImportantGoesFirst",
             {node("n", kTwoCpus)},
             {pod("a", cpu("2")), pod("b", cpu("2", R"(,"priority":10)"))},
             {"b → n", "a: 0/1 nodes are available: 1 Insufficient cpu."}},
        Case{"ObeysTheNodeSelector",
             {node("n1", kTwoCpus), node("n2", kTwoCpus, R"({"gpu":"a100"})")},
             {pod("a", cpu("1", R"(,"nodeSelector":{"gpu":"a100"})"))},
             {"a → n2"}},
        Case{"SaysThatNoNodeMatches",
             {node("n1", kTwoCpus)},
             {pod("a", cpu("1", R"(,"nodeSelector":{"gpu":"a100"})"))},
             {"a: 0/1 nodes are available: 1 node(s) didn't match Pod's node affinity/selector."}},
        Case{"AResourceTheNodeLacksIsInsufficient",
             {node("n", kTwoCpus)},
             {pod("a", R"({"containers":[{"resources":{"limits":{"nvidia.com/gpu":"1"}}}]})")},
             {"a: 0/1 nodes are available: 1 Insufficient nvidia.com/gpu."}},
        Case{"LeavesGatedPodsAlone",
             {node("n", kTwoCpus)},
             {pod("a", cpu("1", R"(,"schedulingGates":[{"name":"g"}])"))},
             {}},
        Case{"SaysNothingTwice",
             {node("n", kTwoCpus)},
             {pod("a", cpu("3"), R"({"conditions":[{"type":"PodScheduled","status":"False",
                 "message":"0/1 nodes are available: 1 Insufficient cpu."}]})")},
             {}},
        Case{"ACordonedNodeTakesNothing",
             {node("n", kTwoCpus, "{}", R"({"unschedulable":true})")},
             {pod("a", cpu("1"))},
             {"a: 0/1 nodes are available: 1 node(s) were unschedulable."}},
        Case{"InitContainersNeedTheLargestOfThemNotTheSum",
             {node("n", kTwoCpus)},
             {pod("a", R"({"initContainers":[{"resources":{"requests":{"cpu":"2"}}},
                 {"resources":{"requests":{"cpu":"2"}}}],
                 "containers":[{"resources":{"requests":{"cpu":"1"}}}]})")},
             {"a → n"}},
        Case{"WithoutNodesItSaysSo",
             {},
             {pod("a", cpu("1"))},
             {"a: no nodes available to schedule pods"}}),
    [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace grapnel::local
