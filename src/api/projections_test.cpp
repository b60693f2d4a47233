#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "api/condition.h"
#include "api/job.h"
#include "api/node.h"
#include "api/pod.h"
#include "api/service.h"

namespace grapnel::api {
namespace {

Json json(std::string_view text) {
  return parse_json(text).value();
}

constexpr std::string_view kJob = R"({"metadata":{"name":"j","namespace":"n"},
  "spec":{"suspend":true,"parallelism":4,"completions":5,"template":{"spec":{
    "nodeSelector":{"n":"1"},"tolerations":[{"key":"t"}],"schedulingGates":[{"name":"g"}]}}},
  "status":{"active":1,"ready":2,"succeeded":3,"failed":4,"terminating":5,
    "startTime":"2026-01-01T00:00:00Z","conditions":[
      {"type":"Failed","status":"True","reason":"BackoffLimitExceeded","message":"m",
       "lastTransitionTime":"2026-01-01T00:00:01Z"},
      {"type":"Suspended","status":"False"}]}})";

TEST(Job, IsReadFromTheWhole) {
  const auto job = decode_job(json(kJob));
  ASSERT_TRUE(job);
  EXPECT_TRUE(job->suspended);
  EXPECT_EQ(job->parallelism, 4);
  EXPECT_EQ(job->completions, 5);
  EXPECT_EQ(job->active, 1);
  EXPECT_EQ(job->ready, 2);
  EXPECT_EQ(job->succeeded, 3);
  EXPECT_EQ(job->failed, 4);
  EXPECT_EQ(job->terminating, 5);
  EXPECT_EQ(job->start_time, parse_time("2026-01-01T00:00:00Z"));
  ASSERT_NE(job->true_condition("Failed"), nullptr);
  EXPECT_EQ(job->true_condition("Failed")->reason, Interned("BackoffLimitExceeded"));
  EXPECT_EQ(job->true_condition("Failed")->message, "m");
  EXPECT_EQ(job->true_condition("Suspended"), nullptr);
  EXPECT_EQ(
      to_text(job->scheduling),
      R"({"nodeSelector":{"n":"1"},"tolerations":[{"key":"t"}],"schedulingGates":[{"name":"g"}]})");
  EXPECT_EQ(*job, *decode_job(json(kJob)));
}

TEST(Job, ARunningOneKeepsNothingOfItsTemplate) {
  Json object = json(kJob);
  object.as_object()["spec"].as_object()["suspend"] = false;
  const auto job = decode_job(object);
  ASSERT_TRUE(job);
  EXPECT_TRUE(job->scheduling.is_null());
}

constexpr std::string_view kPod = R"({"metadata":{"name":"p","namespace":"n","labels":{
    "keep":"1","controller-uid":"u"}},
  "spec":{"nodeName":"node-1","hostname":"h","restartPolicy":"Never","schedulingGates":[{"name":"g"}],"nodeSelector":{"rack":"r1"}},
  "status":{"phase":"Running","podIP":"10.0.0.1","reason":"Evicted","conditions":[
      {"type":"PodScheduled","status":"True"},{"type":"Initialized","status":"True"},
      {"type":"Ready","status":"False","reason":"ContainersNotReady","message":"m"},
      {"type":"DisruptionTarget","status":"True","reason":"EvictionByEvictionAPI"}],
    "initContainerStatuses":[{"name":"i","ready":true,"restartCount":1,
      "state":{"terminated":{"exitCode":3,"reason":"Error"}}}],
    "containerStatuses":[
      {"name":"c","ready":false,"restartCount":7,
       "state":{"waiting":{"reason":"CrashLoopBackOff","message":"back-off"}}},
      {"name":"d","ready":true,"state":{"running":{}}}]}})";

TEST(Pod, IsReadFromTheWhole) {
  const auto pod = decode_pod(json(kPod), {.all_labels = false, .labels = {"keep"}});
  ASSERT_TRUE(pod);
  EXPECT_EQ(pod->meta.labels.size(), 1U);
  EXPECT_EQ(pod->node, Interned("node-1"));
  EXPECT_EQ(pod->phase, Pod::Phase::kRunning);
  EXPECT_EQ(to_string(pod->phase), "Running");
  EXPECT_FALSE(pod->ready);
  EXPECT_TRUE(pod->restarts_never);
  EXPECT_EQ(pod->gates.size(), 1U);
  EXPECT_EQ(pod->gates[0], Interned("g"));
  EXPECT_EQ(pod->node_selector.get("rack"), "r1");
  EXPECT_EQ(pod->ip, "10.0.0.1");
  EXPECT_EQ(pod->reason, Interned("Evicted"));
  EXPECT_EQ(pod->condition("PodScheduled"), nullptr);
  EXPECT_EQ(pod->condition("Ready")->message, "m");
  EXPECT_TRUE(pod->condition("DisruptionTarget")->is_true);
  ASSERT_EQ(pod->containers.size(), 3U);
  EXPECT_EQ(pod->container("i")->exit_code, 3);
  EXPECT_TRUE(pod->container("i")->is_init);
  EXPECT_EQ(pod->container("c")->reason, Interned("CrashLoopBackOff"));
  EXPECT_EQ(pod->container("c")->restarts, 7);
  EXPECT_EQ(pod->container("d")->state, ContainerStatus::State::kRunning);
  EXPECT_EQ(pod->container("none"), nullptr);
}

TEST(Pod, IsSmall) {
  EXPECT_LE(sizeof(Pod), 600U);
}

TEST(Pod, OfAnyShapeIsReadOrRefused) {
  EXPECT_FALSE(decode_pod(json("{}"), {}));
  EXPECT_FALSE(decode_pod(json("[]"), {}));
  const auto pod =
      decode_pod(json(R"({"metadata":{"name":"p"},"spec":[],"status":{"phase":1,"conditions":{},
               "containerStatuses":[1,{"state":"x"}]}})"),
                 {});
  ASSERT_TRUE(pod);
  EXPECT_EQ(pod->phase, Pod::Phase::kPending);
}

TEST(Node, IsReadFromTheWhole) {
  const auto node = decode_node(json(R"({"metadata":{"name":"n","labels":{"rack":"r1"}},
      "spec":{"unschedulable":true},"status":{"conditions":[{"type":"MemoryPressure",
      "status":"False"},{"type":"Ready","status":"True"}]}})"));
  ASSERT_TRUE(node);
  EXPECT_TRUE(node->ready);
  EXPECT_TRUE(node->unschedulable);
  EXPECT_EQ(node->meta.labels.get("rack"), "r1");
}

TEST(Service, IsReadFromTheWhole) {
  const auto service = decode_service(json(R"({"metadata":{"name":"s","namespace":"n"},
      "spec":{"type":"NodePort","clusterIP":"10.1.1.1","publishNotReadyAddresses":true,
        "selector":{"a":"b"},"ports":[{"name":"x","port":80,"targetPort":8080,"nodePort":30000,
                                       "protocol":"UDP"},
                                      {"port":81,"targetPort":"http"}]}})"));
  ASSERT_TRUE(service);
  EXPECT_EQ(service->type, Interned("NodePort"));
  EXPECT_EQ(service->cluster_ip, "10.1.1.1");
  EXPECT_TRUE(service->publish_not_ready_addresses);
  EXPECT_EQ(service->selector.get("a"), "b");
  ASSERT_EQ(service->ports.size(), 2U);
  EXPECT_EQ(service->ports[0], (ServicePort{Interned("x"), 80, 30000, "8080", Interned("UDP")}));
  EXPECT_EQ(service->ports[1].target_port, "http");
}

TEST(Condition, KeepsTheTimeOfItsTransitionWhileTheStatusStays) {
  const Time first{seconds(100)};
  const Time second{seconds(200)};
  std::vector<Condition> all;
  const Condition is_true{.type = "T", .status = ConditionStatus::True, .reason = "R"};
  EXPECT_TRUE(set_condition(all, is_true, first));
  EXPECT_FALSE(set_condition(all, is_true, second));
  EXPECT_TRUE(is_condition_true(all, "T"));
  Condition other_reason = is_true;
  other_reason.reason = "S";
  EXPECT_TRUE(set_condition(all, other_reason, second));
  EXPECT_EQ(find_condition(all, "T")->last_transition_time, first);
  Condition is_false = is_true;
  is_false.status = ConditionStatus::False;
  EXPECT_TRUE(set_condition(all, is_false, second));
  EXPECT_EQ(find_condition(all, "T")->last_transition_time, second);
  EXPECT_FALSE(is_condition_true(all, "T"));
  EXPECT_EQ(all.size(), 1U);
  EXPECT_TRUE(remove_condition(all, "T"));
  EXPECT_FALSE(remove_condition(all, "T"));
  EXPECT_EQ(find_condition(all, "T"), nullptr);
}

}  // namespace
}  // namespace grapnel::api
