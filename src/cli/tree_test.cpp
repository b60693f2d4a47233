#include "cli/tree.h"

#include <gtest/gtest.h>

#include "document/json.h"

namespace grapnel::cli {
namespace {

constexpr std::string_view kUid = "5d1c9b0e-0000-4000-8000-000000000001";

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

api::Job job(std::string_view status) {
  const Json json = *parse_json(fmt::format(
      R"({{"metadata":{{"name":"train-worker-0","uid":"{}"}},
          "spec":{{"parallelism":2,"completions":2}},"status":{}}})",
      kUid, status));
  return *api::decode_job(json);
}

api::Pod pod(std::string_view name, std::string_view spec, std::string_view status) {
  const Json json = *parse_json(fmt::format(
      R"({{"metadata":{{"name":"{}","ownerReferences":[
            {{"apiVersion":"batch/v1","kind":"Job","name":"train-worker-0","uid":"{}",
              "controller":true}}]}},"spec":{},"status":{}}})",
      name, kUid, spec, status));
  return *api::decode_pod(json, {.all_labels = true});
}

TEST(Tree, ShowsEachLevelWithItsState) {
  const auto e = experiment(
      R"({"phase":"Running","message":"1 of 2 processes run",
          "child":{"apiVersion":"jobset.x-k8s.io/v1alpha2","kind":"JobSet","name":"train"},
          "components":[{"name":"worker","desired":2,"ready":1,"succeeded":0,"failed":0}]})");
  const auto j = job(R"({"active":2,"ready":1})");
  const auto a = pod("train-worker-0-0", R"({"nodeName":"laptop"})", R"({"phase":"Running"})");
  const auto b = pod("train-worker-0-1", "{}",
                     R"({"phase":"Pending","conditions":[{"type":"PodScheduled","status":"False",
                         "message":"0/1 nodes are available: 1 Insufficient cpu."}]})");
  EXPECT_EQ(render_tree({e, {&j}, {&a, &b}}, now()),
            "Experiment train  Running (1 of 2 processes run)  jax  3m12s\n"
            "└─ JobSet train  1/2 processes\n"
            "   └─ Job train-worker-0  2 active, 1 ready, 0 of 2 succeeded\n"
            "      ├─ Pod train-worker-0-0  Running  on laptop\n"
            "      └─ Pod train-worker-0-1  Pending (0/1 nodes are available: 1 Insufficient "
            "cpu.)\n");
}

TEST(Tree, SaysWhatAContainerDiedOf) {
  const auto e = experiment(
      R"({"phase":"Failed","message":"worker 0 ended with code 7","startTime":
          "2026-05-04T10:00:00Z","endTime":"2026-05-04T10:00:05Z","restarts":1,
          "child":{"apiVersion":"jobset.x-k8s.io/v1alpha2","kind":"JobSet","name":"train"}})");
  const auto j =
      job(R"({"conditions":[{"type":"Failed","status":"True","reason":"BackoffLimitExceeded"}]})");
  const auto p = pod("train-worker-0-0", "{}",
                     R"({"phase":"Failed","containerStatuses":[{"name":"main","restartCount":2,
                         "state":{"terminated":{"exitCode":7,"reason":"Error"}}}]})");
  EXPECT_EQ(render_tree({e, {&j}, {&p}}, now()),
            "Experiment train  Failed (worker 0 ended with code 7)  jax  5s\n"
            "└─ JobSet train  0/0 processes  1 restarts\n"
            "   └─ Job train-worker-0  Failed (BackoffLimitExceeded)\n"
            "      └─ Pod train-worker-0-0  Failed (Error, exit code 7)  2 restarts\n");
}

TEST(Tree, BeforeAnythingIsThereItIsPending) {
  EXPECT_EQ(render_tree({experiment("{}"), {}, {}}, now()),
            "Experiment train  Pending  jax  3m12s\n");
}

}  // namespace
}  // namespace grapnel::cli
