// Each difference from the original controller that is meant (README.md), and that `strict` leaves
// none of it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "operators/jobset/job_builder.h"
#include "operators/jobset/validate.h"
#include "operators/jobset/world_test.h"

namespace grapnel::jobset {
namespace {

using namespace testing;
using ::testing::ElementsAre;
using ::testing::ElementsAreArray;
using ::testing::IsEmpty;

struct Row {
  std::string_view name;
  std::string spec;
  std::string status = R"({"restarts":0})";
  std::string metadata;
  std::vector<job> jobs;
  bool has_service = true;
  std::vector<std::string> ours;
  std::vector<std::string> strict;
};

void PrintTo(const Row& row, std::ostream* out) {
  *out << row.name;
}

class Strict : public ::testing::TestWithParam<Row> {};

TEST_P(Strict, DoesWhatTheOriginalDoes) {
  const Row& row = GetParam();
  World world{.jobset = make_jobset(row.spec, row.status, row.metadata),
              .has_service = row.has_service};
  for (const auto& j : row.jobs) world.jobs.push_back(j.get());
  EXPECT_THAT(lines_of(world.plan()), ElementsAreArray(row.ours));
  world.strict = true;
  EXPECT_THAT(lines_of(world.plan()), ElementsAreArray(row.strict));
}

std::string title(const ::testing::TestParamInfo<Row>& info) {
  std::string text;
  for (const char c : info.param.name) text += std::isalnum(c) ? c : '_';
  return text;
}

std::string one(std::string_view more = "", std::string_view job_spec = "") {
  return fmt::format(R"({{"replicatedJobs":[{}]{}}})", replicated("w", 1, "", job_spec), more);
}

constexpr std::string_view kNone =
    R"({"name":"w","ready":0,"succeeded":0,"failed":0,"active":0,"suspended":0})";
constexpr std::string_view kOneRuns =
    R"({"name":"w","ready":0,"succeeded":0,"failed":0,"active":1,"suspended":0})";

std::string status(std::string_view counts, std::string_view more = R"("restarts":0)") {
  return fmt::format(R"({{{},"replicatedJobsStatus":[{}]}})", more, counts);
}

constexpr std::string_view kRestarted = R"("restarts":1,"restartsCountTowardsMax":1)";
constexpr std::string_view kPolicy = R"(,"failurePolicy":{"maxRestarts":2})";
constexpr std::string_view kBlocking =
    R"(,"failurePolicy":{"maxRestarts":2,"restartStrategy":"BlockingRecreate"})";
const std::string kAlone =
    R"(,"failurePolicy":{"maxRestarts":2,"rules":[{"name":"r","action":"RestartJob"}]})";
const std::string kFailed = "jobset failed due to one or more job failures (first failed job: ";

INSTANTIATE_TEST_SUITE_P(
    Rows, Strict,
    ::testing::ValuesIn(std::vector<Row>{
        {.name = "a failure counts when the Job is Failed",
         .spec = one(),
         .status = status(kOneRuns),
         .jobs = {job("w", 0).failing("PodFailurePolicy", 1)},
         .ours = {"condition Failed=True/FailedJobs", "status terminalState=\"Failed\"",
                  "event Warning FailedJobs: " + kFailed + "train-w-0)",
                  "count jobset_failed_total"},
         .strict = {}},
        {.name = "and for the reason that Failed gives",
         .spec = one(R"(,"failurePolicy":{"maxRestarts":2,"rules":[{"name":"r",
             "action":"FailJobSet","onJobFailureReasons":["PodFailurePolicy"]}]})"),
         .jobs = {job("w", 0).failing("DeadlineExceeded", 1).failed("PodFailurePolicy", 2)},
         .ours = {"condition RestartingJobSet=True/DefaultFailurePolicy", "status restarts=1",
                  "status restartsCountTowardsMax=1",
                  "event Warning DefaultFailurePolicy: applying RestartJobSet failure policy "
                  "action (first failed job: train-w-0)",
                  "event Warning RestartJobSetFailurePolicyAction: applying RestartJobSet failure "
                  "policy action (first failed job: train-w-0)"},
         .strict = {"condition Failed=True/FailJobSetFailurePolicyAction",
                    "status terminalState=\"Failed\"",
                    "event Warning FailJobSetFailurePolicyAction: applying FailJobSet failure "
                    "policy action (first failed job: train-w-0)",
                    "count jobset_failed_total"}},
        {.name = "a suspended JobSet has its Jobs and its Service",
         .spec = one(R"(,"suspend":true)"),
         .has_service = false,
         .ours = {"condition Suspended=True/SuspendedJobs",
                  "event Normal SuspendedJobs: jobset is suspended"},
         .strict = {"create Service train", "then", "create Job train-w-0",
                    "condition Suspended=True/SuspendedJobs",
                    "event Normal SuspendedJobs: jobset is suspended"}},
        {.name = "a Job that is resumed keeps where it ran the last time",
         .spec = R"({"replicatedJobs":[{"name":"w","template":{"spec":{"template":{"spec":{
             "nodeSelector":{"pool":"x"},"tolerations":[{"key":"t"},{"key":"u"}],
             "containers":[{"name":"c"}]}}}}}]})",
         .jobs = {job("w", 0).suspended().runs_where(
             R"({"nodeSelector":{"pool":"old","flavor":"a"},"tolerations":[{"key":"o"},
             {"key":"t"}],"schedulingGates":[{"name":"g"}]})")},
         .ours = {R"(patch train-w-0 {"spec":{"suspend":false,"template":{"spec":)"
                  R"({"nodeSelector":{"pool":"x","flavor":null},)"
                  R"("tolerations":[{"key":"t"},{"key":"u"}],"schedulingGates":null}}}})"},
         .strict = {R"(patch train-w-0 {"spec":{"suspend":false,"template":{"spec":)"
                    R"({"nodeSelector":{"pool":"x"},)"
                    R"("tolerations":[{"key":"o"},{"key":"t"},{"key":"u"}]}}}})"}},
        {.name = "a restart deletes in the foreground",
         .spec = one(kPolicy),
         .status = status(kNone, kRestarted),
         .jobs = {job("w", 0).failed()},
         .ours = {"delete Job train-w-0 in the background"},
         .strict = {"delete Job train-w-0"}},
        {.name = "a Job stuck in deletion is waited for",
         .spec = one(kPolicy),
         .status = status(kNone, kRestarted),
         .jobs = {job("w", 0).deleting_since(hours(3))},
         .ours = {R"(patch train-w-0 {"metadata":{"finalizers":[]}})"},
         .strict = {}},
        {.name = "a JobSet that has ended leaves the Jobs of earlier runs",
         .spec = one(),
         .status = status(kNone, R"("restarts":1,"terminalState":"Failed","conditions":[
             {"type":"Failed","status":"True","reason":"FailedJobs","message":"m",
              "lastTransitionTime":"2026-03-01T11:00:00Z"}])"),
         .jobs = {job("w", 0).failed()},
         .ours = {"delete Job train-w-0 in the background"},
         .strict = {}},
        {.name = "an invalid spec is tried",
         .spec = one(R"(,"coordinator":{"replicatedJob":"nobody"})"),
         .status = status(kNone),
         .ours = {"condition Failed=True/InvalidSpec", "status terminalState=\"Failed\"",
                  "event Warning InvalidSpec: spec.coordinator.replicatedJob: Invalid value: "
                  "\"nobody\": coordinator replicatedJob nobody does not exist",
                  "count jobset_failed_total"},
         .strict = {"create Job train-w-0"}},
        {.name = "a Job whose labels were tampered with stops everything",
         .spec = one(),
         .status = R"({"restarts":0})",
         .jobs = {job("w", 7).unlabelled()},
         .ours = {"create Job train-w-0"},
         .strict = {}},
        {.name = "no Job is restarted alone",
         .spec = one(kAlone),
         .status = status(kOneRuns, R"("restarts":1)"),
         .jobs = {job("w", 0).attempt(1).own_attempt(0).failed()},
         .ours = {"event Warning RestartJobFailurePolicyAction: applying RestartJob failure policy "
                  "action (first failed job: train-w-0)"},
         .strict = {}},
        {.name = "nor deleted for its own attempt",
         .spec = one(kAlone),
         .status = status(R"({"name":"w","ready":0,"succeeded":0,"failed":0,"active":1,
             "suspended":0,"jobRestarts":[1]})"),
         .jobs = {job("w", 0).own_attempt(0).running()},
         .ours = {"delete Job train-w-0 in the background"},
         .strict = {}},
        {.name = "running Jobs are not scaled",
         .spec = one("", R"("parallelism":3,"completions":3,)"),
         .status = status(kOneRuns),
         .jobs = {job("w", 0).pods(2).running()},
         .ours = {R"(patch train-w-0 {"spec":{"parallelism":3,"completions":3}})"},
         .strict = {}},
    }),
    title);

TEST(StrictStatus, IsInTheOrderOfTheOriginal) {
  World world{.jobset =
                  make_jobset(fmt::format(R"({{"replicatedJobs":[{},{},{}]}})", replicated("b", 1),
                                          replicated("c", 1), replicated("a", 1)))};
  const auto names = [&] {
    std::vector<std::string> names;
    const auto plan = world.plan();
    const Json& counts = *at(plan.status->body, "status", "replicatedJobsStatus");
    for (const Json& entry : counts.as_array()) names.emplace_back(string_or(find(entry, "name")));
    return names;
  };
  EXPECT_THAT(names(), ElementsAre("b", "c", "a"));
  world.strict = true;
  EXPECT_THAT(names(), ElementsAre("c", "b", "a"));
}

const api::Node* no_node(std::string_view) {
  return nullptr;
}

TEST(StrictRestart, WaitsForTheJobAndNotForItsPods) {
  World world{.jobset = make_jobset(one(kPolicy), status(kNone, kRestarted))};
  api::Pod pod;
  pod.meta.key = {Interned("ml"), "train-w-0-0-abcde"};
  pod.meta.owners.push_back(
      {.kind = Interned("Job"), .name = "train-w-0", .uid = kube::Uid("gone"), .controller = true});
  pod.node = Interned("n");
  Observed observed = world.observed();
  observed.pods = {&pod};
  EXPECT_THAT(lines_of(plan(observed, kNow)), IsEmpty()) << "its pod holds its name in DNS";
  observed.strict = true;
  EXPECT_THAT(lines_of(plan(observed, kNow)), ElementsAre("create Job train-w-0"));
}

TEST(StrictRestart, DeletesNoPodByForce) {
  World world{.jobset = make_jobset(one(kBlocking), status(kNone, kRestarted))};
  world.jobs = {job("w", 0).deleting_since(hours(1)).get()};
  api::Pod pod;
  pod.meta.key = {Interned("ml"), "train-w-0-0-abcde"};
  pod.meta.owners.push_back({.kind = Interned("Job"),
                             .name = "train-w-0",
                             .uid = world.jobs[0].meta.uid,
                             .controller = true});
  pod.meta.deleted = kNow - hours(1);
  pod.node = Interned("lost");
  Observed observed = world.observed();
  observed.pods = {&pod};
  observed.find_node = no_node;
  EXPECT_THAT(lines_of(plan(observed, kNow)),
              ElementsAre("delete Pod train-w-0-0-abcde in the background"));
  observed.strict = true;
  EXPECT_THAT(lines_of(plan(observed, kNow)), IsEmpty());
}

TEST(StrictRefusal, IsToldInTheOriginalsWordsAndTriedAgain) {
  const auto told = [](std::string_view what, Reason reason) {
    World world{.jobset = make_jobset(one()), .strict = true};
    const runtime::Refusal refusal{.what = std::string(what),
                                   .error = {.reason = reason, .message = "why"}};
    Observed observed = world.observed();
    observed.refused = &refusal;
    return lines_of(plan(observed, kNow));
  };
  EXPECT_THAT(told("create Job ml/train-w-0", Reason::kInvalid),
              ElementsAre("event Warning JobCreationFailed: job \"train-w-0\" creation failed with "
                          "error: why"));
  EXPECT_THAT(told("create Service ml/train", Reason::kForbidden),
              ElementsAre("event Warning HeadlessServiceCreationFailed: why"));
  EXPECT_THAT(told("create PersistentVolumeClaim ml/d-train", Reason::kForbidden),
              ElementsAre("event Warning PVCCreationFailed: why"));
}

TEST(StrictJobs, HaveNeitherPriorityNorAnAttemptOfTheirOwn) {
  const auto jobset = make_jobset(one(kAlone));
  const auto labels = [&](bool strict) {
    const Json job = JobBuilder(jobset, jobset.spec.replicated_jobs[0], strict).build(0);
    const Json& pod = *at(job, "spec", "template", "metadata", "labels");
    return std::pair(find(pod, keys::kPriority) != nullptr,
                     find(pod, keys::kJobRestartAttempt) != nullptr);
  };
  EXPECT_EQ(labels(false), std::pair(true, true));
  EXPECT_EQ(labels(true), std::pair(false, false));
}

struct Verdict {
  std::string_view name;
  std::string spec;
  std::string_view ours;  // fields at fault
  std::string_view strict;
};

std::string fields_of(const std::vector<Cause>& causes) {
  std::string text;
  for (const auto& cause : causes) text += (text.empty() ? "" : " ") + cause.field;
  return text;
}

TEST(StrictValidation, RefusesWhatTheOriginalRefuses) {
  const std::string pattern = R"(,"failurePolicy":{"rules":[{"name":"r","action":"FailJobSet",
      "onJobFailureMessagePatterns":["("]}]})";
  for (const auto& row : std::vector<Verdict>{
           {"a dependency on itself",
            fmt::format(R"({{"replicatedJobs":[{},{}]}})", replicated("a", 1),
                        replicated("b", 1, R"(,"dependsOn":[{"name":"b","status":"Ready"}])")),
            "spec.replicatedJobs[1].dependsOn[0].name", ""},
           {"no pods", R"({"replicatedJobs":[{"name":"w","template":{"spec":{}}}]})",
            "spec.replicatedJobs[0].template.spec.template.spec", ""},
           {"a wrong pattern", one(pattern),
            "spec.failurePolicy.rules[0].onJobFailureMessagePatterns[0]", ""},
           {"a Job that restarts alone", one(kAlone), "", "spec.failurePolicy.rules[0].action"},
       }) {
    EXPECT_EQ(fields_of(validate(make_jobset(row.spec))), row.ours) << row.name;
    EXPECT_EQ(fields_of(validate_strictly(make_jobset(row.spec))), row.strict) << row.name;
  }
  const auto before = make_jobset(one("", R"("parallelism":2,"completions":2,)"));
  const auto after = make_jobset(one("", R"("parallelism":3,"completions":3,)"));
  EXPECT_EQ(fields_of(validate_update(before, after)), "");
  EXPECT_EQ(fields_of(validate_update_strictly(before, after)), "spec.replicatedJobs[0]");
}

}  // namespace
}  // namespace grapnel::jobset
