#include "cli/tree.h"

#include <gtest/gtest.h>

#include "document/json.h"

namespace grapnel::cli {
namespace {

Time now() {
  return *parse_time("2026-05-04T10:03:12Z");
}

api::Experiment experiment(std::string_view status) {
  const Json json = *parse_json(fmt::format(
      R"({{"apiVersion":"grapnel.dev/v1alpha1","kind":"Experiment",
          "metadata":{{"name":"train","namespace":"default",
                       "creationTimestamp":"2026-05-04T10:00:00Z"}},
          "spec":{{"operator":"jax","command":"true","types":{{}}}},"status":{}}})",
      status));
  auto decoded = api::decode_resource<api::Experiment>(json);
  EXPECT_TRUE(decoded) << decoded.error().message;
  return *decoded;
}

// A pod of component `worker`, with that rank.
api::Pod pod(int rank, std::string_view spec, std::string_view status) {
  const Json json = *parse_json(fmt::format(
      R"({{"metadata":{{"name":"train-worker-0-{0}","labels":{{"grapnel.dev/component":"worker",
            "batch.kubernetes.io/job-completion-index":"{0}"}}}},"spec":{1},"status":{2}}})",
      rank, spec, status));
  return *api::decode_pod(json, {.all_labels = true});
}

TEST(Tree, ShowsEachLevelWithItsState) {
  const auto e = experiment(
      R"({"phase":"Running","message":"1 of 2 processes run",
          "child":{"apiVersion":"jobset.x-k8s.io/v1alpha2","kind":"JobSet","name":"train"},
          "components":[{"name":"worker","desired":2,"ready":1,"succeeded":0,"failed":0}]})");
  const auto a = pod(0, R"({"nodeName":"laptop"})", R"({"phase":"Running"})");
  const auto b = pod(1, "{}",
                     R"({"phase":"Pending","conditions":[{"type":"PodScheduled","status":"False",
                         "message":"0/1 nodes are available: 1 Insufficient cpu."}]})");
  EXPECT_EQ(render_tree({e, {&b, &a}}, now()),
            "Experiment train  Running (1 of 2 processes run)  jax  3m12s\n"
            "└─ JobSet train  1/2 processes\n"
            "   └─ worker  1 ready of 2\n"
            "      ├─ worker-0  Running  on laptop  (pod train-worker-0-0)\n"
            "      └─ worker-1  Pending (0/1 nodes are available: 1 Insufficient cpu.)  (pod "
            "train-worker-0-1)\n");
}

TEST(Tree, SaysWhatAContainerDiedOf) {
  const auto e = experiment(
      R"({"phase":"Failed","message":"worker 0 ended with code 7","startTime":
          "2026-05-04T10:00:00Z","endTime":"2026-05-04T10:00:05Z","restarts":1,
          "child":{"apiVersion":"jobset.x-k8s.io/v1alpha2","kind":"JobSet","name":"train"},
          "components":[{"name":"worker","desired":1,"ready":0,"succeeded":0,"failed":1}]})");
  const auto p = pod(0, "{}",
                     R"({"phase":"Failed","containerStatuses":[{"name":"main","restartCount":2,
                         "state":{"terminated":{"exitCode":7,"reason":"Error"}}}]})");
  EXPECT_EQ(render_tree({e, {&p}}, now()),
            "Experiment train  Failed (worker 0 ended with code 7)  jax  5s\n"
            "└─ JobSet train  0/1 processes  1 restarts\n"
            "   └─ worker  1 failed of 1\n"
            "      └─ worker-0  Failed (Error, exit code 7)  2 restarts  (pod train-worker-0-0)\n");
}

TEST(Tree, ShowsEveryComponentAndWhatRunsBesideThem) {
  const auto e = experiment(
      R"({"phase":"Running","child":{"apiVersion":"ray.io/v1","kind":"RayJob","name":"train"},
          "components":[{"name":"head","desired":1,"ready":1,"succeeded":0,"failed":0},
                        {"name":"big","desired":2,"ready":0,"succeeded":0,"failed":0}]})");
  const auto labelled = [](std::string_view name, std::string_view labels) {
    return *api::decode_pod(*parse_json(fmt::format(R"({{"metadata":{{"name":"{}","labels":{{{}}}}},
                                    "status":{{"phase":"Running"}}}})",
                                                    name, labels)),
                            {.all_labels = true});
  };
  const auto board =
      labelled("board", R"("grapnel.dev/component":"tensorboard","grapnel.dev/companion":"true")");
  const auto head = labelled("h", R"("grapnel.dev/component":"head","grapnel.dev/rank":"0")");
  const auto big = labelled(
      "b1", R"("grapnel.dev/component":"big","grapnel.dev/replica":"1","grapnel.dev/rank":"2")");
  EXPECT_EQ(render_tree({e, {&board, &big, &head}}, now()),
            "Experiment train  Running  jax  3m12s\n"
            "└─ RayJob train  1/3 processes\n"
            "   ├─ head  1 ready of 1\n"
            "   │  └─ head-0  Running  (pod h)\n"
            "   ├─ big  0 ready of 2\n"
            "   │  └─ big-1  Running  (pod b1)\n"
            "   └─ tensorboard  Running  (pod board)\n");
}

TEST(Tree, BeforeAnythingIsThereItIsPending) {
  EXPECT_EQ(render_tree({experiment("{}"), {}}, now()), "Experiment train  Pending  jax  3m12s\n");
}

}  // namespace
}  // namespace grapnel::cli
