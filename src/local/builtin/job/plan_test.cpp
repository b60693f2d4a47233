#include "local/builtin/job/plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <ctime>
#include <deque>
#include <limits>

namespace grapnel::local {
namespace {

const Time kNow = *parse_time("2026-01-01T00:10:00Z");

Json json(std::string_view text) {
  return parse_json(text).value();
}

// A pod of the Job under test: "0 Failed exit=3 held" is a failed pod of index 0 that ended with
// code 3 and still has its finalizer. Words: phase, ready, deleting, held, free, exit=N,
// ago=SECONDS.
struct PodSpec {
  std::optional<int64_t> index;
  std::string phase = "Running";
  bool ready = false;
  bool deleting = false;
  bool held = true;  // has the finalizer
  int64_t exit = 0;
  int64_t ago = 600;  // seconds since its end
  int64_t failures = 0;
  std::string condition;
};

struct Case {
  std::string name;
  std::string spec;  // of the Job, beside its template
  std::string status = "{}";
  std::vector<PodSpec> pods;
  // What is expected, one line for each write in the order of the plan; status as the merge patch.
  std::vector<std::string> writes;
  std::string status_patch;  // "": not looked at; "none": no status is written
  std::optional<int64_t> look_again_seconds;
};

std::string pod_text(const PodSpec& pod, size_t number) {
  JsonObject metadata{{"name", fmt::format("p{}", number)},
                      {"namespace", "ns"},
                      {"uid", fmt::format("uid-{}", number)},
                      {"resourceVersion", "7"},
                      {"creationTimestamp", "2026-01-01T00:00:00Z"}};
  JsonObject annotations;
  if (pod.index) annotations[kCompletionIndex] = std::to_string(*pod.index);
  annotations[kIndexFailureCount] = std::to_string(pod.failures);
  metadata["annotations"] = annotations;
  if (pod.held) metadata["finalizers"] = JsonArray{kTrackingFinalizer};
  if (pod.deleting) metadata["deletionTimestamp"] = "2026-01-01T00:09:50Z";
  JsonArray conditions{JsonObject{{"type", "Ready"}, {"status", pod.ready ? "True" : "False"}}};
  if (!pod.condition.empty()) {
    conditions.push_back({{"type", pod.condition}, {"status", "True"}});
  }
  JsonObject state;
  if (pod.phase == "Failed") {
    state["terminated"] = JsonObject{{"exitCode", pod.exit == 0 ? 1 : pod.exit},
                                     {"finishedAt", format_time(kNow - seconds(pod.ago))}};
  }
  return to_text(JsonObject{
      {"metadata", metadata},
      {"status", JsonObject{{"phase", pod.phase},
                            {"conditions", conditions},
                            {"containerStatuses",
                             JsonArray{JsonObject{{"name", "main"}, {"state", state}}}}}}});
}

std::string words_of(const runtime::Write& write) {
  if (const auto* create = std::get_if<runtime::Create>(&write)) {
    const Json pod = create->object.make();
    const auto index = string_or(at(pod, "metadata", "labels", kCompletionIndex), "-");
    return fmt::format("create {}", index);
  }
  if (const auto* erase = std::get_if<runtime::Delete>(&write)) {
    return fmt::format("delete {} {}", erase->target.kind->kind, erase->target.key.name);
  }
  const auto& patch = std::get<runtime::Patch>(write);
  return fmt::format("release {} at {}", patch.target.key.name, patch.if_version);
}

class JobPlan : public testing::TestWithParam<Case> {};

TEST_P(JobPlan, Answers) {
  const Case& c = GetParam();
  Json object = json(R"({"metadata":{"name":"j","namespace":"ns",
      "uid":"11111111-2222-3333-4444-555555555555"}})");
  object.as_object()["spec"] = json(c.spec);
  object.as_object()["spec"].as_object()["template"] =
      json(R"({"spec":{"containers":[{"name":"main","image":"x"}]}})");
  object.as_object()["status"] = json(c.status);
  const auto job = decode_job(object);
  ASSERT_TRUE(job) << job.error().message;
  std::deque<JobPod> pods;
  JobObserved observed{.job = &*job};
  for (const auto& spec : c.pods) {
    const auto pod = decode_job_pod(json(pod_text(spec, pods.size())));
    ASSERT_TRUE(pod);
    pods.push_back(*pod);
    observed.pods.push_back(&pods.back());
  }

  const runtime::Plan p = plan(observed, kNow);

  std::vector<std::string> writes;
  for (const auto& stage : p.stages) {
    for (const auto& write : stage) writes.push_back(words_of(write));
  }
  EXPECT_EQ(writes, c.writes);
  if (c.status_patch == "none") EXPECT_FALSE(p.status) << to_text(p.status->body);
  if (!c.status_patch.empty() && c.status_patch != "none") {
    ASSERT_TRUE(p.status);
    const Json expected = json(c.status_patch);
    for (const auto& [key, value] : expected.as_object()) {
      const auto* actual = at(p.status->body, "status", key);
      ASSERT_NE(actual, nullptr) << key << " in " << to_text(p.status->body);
      if (key == std::string_view("conditions")) {
        std::string list;
        for (const auto& condition : actual->as_array()) {
          list += fmt::format("{}={}/{} ", string_or(find(condition, "type")),
                              string_or(find(condition, "status")),
                              string_or(find(condition, "reason")));
        }
        EXPECT_EQ(list, value.as_string().c_str());
      } else {
        EXPECT_TRUE(equal(*actual, value)) << key << ": " << to_text(*actual);
      }
    }
  }
  if (c.look_again_seconds) {
    ASSERT_TRUE(p.look_again);
    EXPECT_EQ(duration_cast<seconds>(*p.look_again).count(), *c.look_again_seconds);
  }
}

const std::string kStarted = R"({"startTime":"2026-01-01T00:00:00Z"})";

std::vector<Case> cases() {
  const std::string indexed2 = R"({"completionMode":"Indexed","completions":2,"parallelism":2,)"
                               R"("backoffLimit":0})";
  const std::string indexed5 = R"({"completionMode":"Indexed","completions":5,"parallelism":2})";
  return {
      {.name = "starts as many as may run at a time",
       .spec = indexed5,
       .writes = {"create 0", "create 1"},
       .status_patch = R"({"startTime":"2026-01-01T00:10:00Z"})"},
      {.name = "one pod when nothing is said", .spec = "{}", .writes = {"create -"}},
      {.name = "takes the next free index",
       .spec = indexed5,
       .status = R"({"startTime":"2026-01-01T00:00:00Z","completedIndexes":"0,2","succeeded":2})",
       .pods = {{.index = 1}},
       .writes = {"create 3"}},
      {.name = "is content when all run",
       .spec = indexed2,
       .status = R"({"startTime":"2026-01-01T00:00:00Z","active":2,"ready":1,"terminating":0,
           "uncountedTerminatedPods":{}})",
       .pods = {{.index = 0, .ready = true}, {.index = 1}},
       .status_patch = "none"},
      {.name = "notes a success before it lets the pod go",
       .spec = indexed2,
       .status = kStarted,
       .pods = {{.index = 0, .phase = "Succeeded"}, {.index = 1}},
       .status_patch = R"({"completedIndexes":"0","succeeded":1,"active":1})"},
      {.name = "lets a noted pod go",
       .spec = indexed2,
       .status = R"({"startTime":"2026-01-01T00:00:00Z","completedIndexes":"0","succeeded":1})",
       .pods = {{.index = 0, .phase = "Succeeded"}, {.index = 1}},
       .writes = {"release p0 at 7"}},
      {.name = "meets its criteria with the last success",
       .spec = indexed2,
       .status = R"({"startTime":"2026-01-01T00:00:00Z","completedIndexes":"0","succeeded":1})",
       .pods = {{.index = 0, .phase = "Succeeded", .held = false},
                {.index = 1, .phase = "Succeeded"}},
       .status_patch = R"({"completedIndexes":"0,1",
           "conditions":"SuccessCriteriaMet=True/CompletionsReached "})"},
      {.name = "completes when all is counted",
       .spec = indexed2,
       .status = R"({"startTime":"2026-01-01T00:00:00Z","completedIndexes":"0,1","succeeded":2,
           "conditions":[{"type":"SuccessCriteriaMet","status":"True","reason":"CompletionsReached"}]})",
       .pods = {{.index = 1, .phase = "Succeeded"}},
       .writes = {"release p0 at 7"},
       .status_patch = R"({"completionTime":"2026-01-01T00:10:00Z",
           "conditions":"SuccessCriteriaMet=True/CompletionsReached Complete=True/CompletionsReached "})"},
      {.name = "notes a failure by uid",
       .spec = R"({"completions":1,"backoffLimit":3})",
       .status = kStarted,
       .pods = {{.phase = "Failed"}},
       .writes = {"create -"},
       .status_patch = R"({"uncountedTerminatedPods":{"failed":["uid-0"]}})"},
      {.name = "turns a noted uid into a number",
       .spec = R"({"completions":1,"backoffLimit":3})",
       .status =
           R"({"startTime":"2026-01-01T00:00:00Z","uncountedTerminatedPods":{"failed":["uid-0"]}})",
       .pods = {{.phase = "Failed"}},
       .writes = {"release p0 at 7", "create -"},
       .status_patch = R"({"failed":1,"uncountedTerminatedPods":{"failed":null}})"},
      {.name = "counts a noted pod that is gone since",
       .spec = R"({"completions":1,"backoffLimit":3})",
       .status =
           R"({"startTime":"2026-01-01T00:00:00Z","uncountedTerminatedPods":{"failed":["x"]}})",
       .writes = {"create -"},
       .status_patch = R"({"failed":1})"},
      {.name = "does not count a released pod again",
       .spec = R"({"completions":1,"backoffLimit":3})",
       .status = R"({"startTime":"2026-01-01T00:00:00Z","failed":1,"ready":0,"terminating":0,
           "uncountedTerminatedPods":{}})",
       .pods = {{.phase = "Failed", .held = false}},
       .writes = {"create -"},
       .status_patch = "none"},
      {.name = "waits ten seconds after the first failure",
       .spec = R"({"completions":1,"backoffLimit":3})",
       .status = kStarted,
       .pods = {{.phase = "Failed", .ago = 4}},
       .look_again_seconds = 6},
      {.name = "waits twice as long after the second",
       .spec = R"({"completions":1,"backoffLimit":3})",
       .status = kStarted,
       .pods = {{.phase = "Failed", .ago = 30}, {.phase = "Failed", .ago = 4}},
       .look_again_seconds = 16},
      {.name = "fails beyond the back-off limit and ends the others",
       .spec = indexed2,
       .status = kStarted,
       .pods = {{.index = 0, .phase = "Failed"}, {.index = 1}},
       .writes = {"delete Pod p1"},
       .status_patch = R"({"conditions":"FailureTarget=True/BackoffLimitExceeded "})"},
      {.name = "has not failed while a pod still ends",
       .spec = indexed2,
       .status = R"({"startTime":"2026-01-01T00:00:00Z","failed":1,"terminating":1,"ready":0,
           "uncountedTerminatedPods":{"failed":["uid-1"]},
           "conditions":[{"type":"FailureTarget","status":"True","reason":"BackoffLimitExceeded"}]})",
       .pods = {{.index = 0, .phase = "Failed", .held = false},
                {.index = 1, .deleting = true, .held = false}}},
      {.name = "has failed when no pod is left",
       .spec = indexed2,
       .status = R"({"startTime":"2026-01-01T00:00:00Z","failed":2,
           "conditions":[{"type":"FailureTarget","status":"True","reason":"BackoffLimitExceeded"}]})",
       .status_patch =
           R"({"conditions":"FailureTarget=True/BackoffLimitExceeded Failed=True/BackoffLimitExceeded "})"},
      {.name = "fails at its deadline",
       .spec = R"({"activeDeadlineSeconds":600})",
       .status = kStarted,
       .pods = {{}},
       .writes = {"delete Pod p0"},
       .status_patch = R"({"conditions":"FailureTarget=True/DeadlineExceeded "})"},
      {.name = "looks again at its deadline",
       .spec = R"({"activeDeadlineSeconds":700})",
       .status = kStarted,
       .pods = {{}},
       .look_again_seconds = 100},
      {.name = "suspended: lets its pods go, ends them and forgets when it started",
       .spec = R"({"suspend":true})",
       .status = kStarted,
       .pods = {{}},
       .writes = {"release p0 at 7", "delete Pod p0"},
       .status_patch = R"({"startTime":null,"conditions":"Suspended=True/JobSuspended "})"},
      {.name = "resumed: starts again from now",
       .spec = R"({"suspend":false})",
       .status = R"({"conditions":[{"type":"Suspended","status":"True"}]})",
       .writes = {"create -"},
       .status_patch =
           R"({"startTime":"2026-01-01T00:10:00Z","conditions":"Suspended=False/JobResumed "})"},
      {.name = "fewer at a time: the least useful go, highest index first",
       .spec = R"({"completionMode":"Indexed","completions":4,"parallelism":1})",
       .status = kStarted,
       .pods = {{.index = 0, .ready = true}, {.index = 1}, {.index = 2, .ready = true}},
       .writes = {"release p1 at 7", "release p2 at 7", "delete Pod p1", "delete Pod p2"}},
      {.name = "leaves a Job to the controller it names",
       .spec = R"({"managedBy":"x.dev/other"})",
       .status_patch = "none"},
      {.name = "a failure policy can ignore a failure",
       .spec = R"({"completions":1,"backoffLimit":0,"podFailurePolicy":{"rules":[
           {"action":"Ignore","onPodConditions":[{"type":"DisruptionTarget"}]}]}})",
       .status = kStarted,
       .pods = {{.phase = "Failed", .condition = "DisruptionTarget"}},
       .writes = {"release p0 at 7", "create -"}},
      {.name = "a failure policy can fail the Job",
       .spec = R"({"completions":1,"podFailurePolicy":{"rules":[
           {"action":"FailJob","onExitCodes":{"operator":"In","values":[42]}}]}})",
       .status = kStarted,
       .pods = {{.phase = "Failed", .exit = 42}},
       .status_patch = R"({"conditions":"FailureTarget=True/PodFailurePolicy "})"},
      {.name = "an index fails alone with a limit for each",
       .spec =
           R"({"completionMode":"Indexed","completions":2,"parallelism":2,"backoffLimitPerIndex":1})",
       .status = kStarted,
       .pods = {{.index = 0, .phase = "Failed", .failures = 1}, {.index = 1}},
       .status_patch = R"({"failedIndexes":"0"})"},
      {.name = "a deleted pod is replaced at once",
       .spec = R"({"completions":1,"backoffLimit":3})",
       .status = kStarted,
       .pods = {{.deleting = true}},
       .writes = {"create -"},
       .status_patch = R"({"terminating":1})"},
      {.name = "or only when it has ended, where the Job says so",
       .spec = R"({"completions":1,"podReplacementPolicy":"Failed"})",
       .status = R"({"startTime":"2026-01-01T00:00:00Z","ready":0,"terminating":1,
           "uncountedTerminatedPods":{}})",
       .pods = {{.deleting = true}},
       .status_patch = "none"},
      {.name = "success policy: the leader's success is enough",
       .spec = R"({"completionMode":"Indexed","completions":3,"parallelism":3,
           "successPolicy":{"rules":[{"succeededIndexes":"0"}]}})",
       .status = kStarted,
       .pods = {{.index = 0, .phase = "Succeeded"}, {.index = 1}, {.index = 2}},
       .writes = {"delete Pod p2", "delete Pod p1"},
       .status_patch = R"({"conditions":"SuccessCriteriaMet=True/SuccessPolicy "})"},
      {.name = "goes away after its time to live",
       .spec = R"({"ttlSecondsAfterFinished":60})",
       .status = R"({"conditions":[{"type":"Complete","status":"True",
           "lastTransitionTime":"2026-01-01T00:09:00Z"}]})",
       .writes = {"delete Job j"}},
      {.name = "stays until then",
       .spec = R"({"ttlSecondsAfterFinished":61})",
       .status = R"({"conditions":[{"type":"Complete","status":"True",
           "lastTransitionTime":"2026-01-01T00:09:00Z"}]})",
       .look_again_seconds = 1},
  };
}

INSTANTIATE_TEST_SUITE_P(Table, JobPlan, testing::ValuesIn(cases()), [](const auto& info) {
  std::string name;
  for (const char c : info.param.name)
    name += std::isalnum(static_cast<unsigned char>(c)) ? c : '_';
  return name;
});

// The processor's time for the pods of a new Job, at its best.
Duration time_for(int64_t pods, const char* mode) {
  Json object = json(R"({"metadata":{"name":"j","namespace":"ns","uid":"u"}})");
  object.as_object()["spec"] = JsonObject{{"parallelism", pods},
                                          {"completions", pods},
                                          {"completionMode", mode},
                                          {"template", JsonObject()}};
  const auto job = decode_job(object);
  EXPECT_TRUE(job);
  std::clock_t best = std::numeric_limits<std::clock_t>::max();
  for (int turn = 0; turn < 5; ++turn) {
    const std::clock_t begin = std::clock();
    const runtime::Plan p = plan({.job = &*job}, kNow);
    best = std::min(best, std::clock() - begin);
    size_t created = 0;
    for (const auto& stage : p.stages) {
      created += static_cast<size_t>(std::ranges::count_if(
          stage, [](const auto& write) { return std::holds_alternative<runtime::Create>(write); }));
    }
    EXPECT_EQ(created, static_cast<size_t>(pods));
  }
  return std::chrono::microseconds(best * 1'000'000 / CLOCKS_PER_SEC);
}

TEST(JobPlan, APodOfManyCostsNoMoreThanOneOfFew) {
  for (const char* mode : {"Indexed", "NonIndexed"}) {
    // Ten times as many; were all names gone through for each, it would be a hundred times as much.
    EXPECT_LT(time_for(500, mode), time_for(50, mode) * 20) << mode;
  }
}

TEST(JobPlan, LetsPodsOfAGoneJobGo) {
  const auto pod = decode_job_pod(json(pod_text({.index = 0}, 0)));
  ASSERT_TRUE(pod);
  const auto p = plan(JobObserved{.pods = {&*pod}}, kNow);
  ASSERT_EQ(p.stages.size(), 1U);
  EXPECT_EQ(words_of(p.stages[0][0]), "release p0 at 7");
}

}  // namespace
}  // namespace grapnel::local
