#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "operators/jobset/world_test.h"

namespace grapnel::jobset {
namespace {

using namespace testing;
using ::testing::ElementsAreArray;

struct Row {
  std::string_view name;
  std::string policy;  // "": none
  std::string status = R"({"restarts":0})";
  std::vector<job> jobs;
  std::vector<std::string> then;
};

void PrintTo(const Row& row, std::ostream* out) {
  *out << row.name;
}

class FailurePolicy : public ::testing::TestWithParam<Row> {};

TEST_P(FailurePolicy, Does) {
  const Row& row = GetParam();
  const std::string policy = row.policy.empty() ? "" : R"(,"failurePolicy":)" + row.policy;
  World world{.jobset = make_jobset(fmt::format(R"({{"replicatedJobs":[{},{}]{}}})",
                                                replicated("a", 2), replicated("b", 2), policy),
                                    row.status)};
  for (const auto& j : row.jobs) world.jobs.push_back(j.get());
  EXPECT_THAT(lines_of(world.plan()), ElementsAreArray(row.then));
}

std::string title(const ::testing::TestParamInfo<Row>& info) {
  std::string text;
  for (const char c : info.param.name) text += std::isalnum(c) ? c : '_';
  return text;
}

std::vector<std::string> fails(std::string_view reason, std::string_view message) {
  return {fmt::format("condition Failed=True/{}", reason), "status terminalState=\"Failed\"",
          fmt::format("event Warning {}: {}", reason, message), "count jobset_failed_total"};
}

std::vector<std::string> restarts(int restarts, int counted, std::string_view cause,
                                  std::string_view action, std::string_view job_name) {
  const std::string message =
      fmt::format("applying {} failure policy action (first failed job: {})", action, job_name);
  std::vector<std::string> lines{fmt::format("condition RestartingJobSet=True/{}", cause),
                                 fmt::format("status restarts={}", restarts)};
  if (counted > 0) lines.push_back(fmt::format("status restartsCountTowardsMax={}", counted));
  lines.push_back(fmt::format("event Warning {}: {}", cause, message));
  lines.push_back(fmt::format("event Warning {}FailurePolicyAction: {}", action, message));
  return lines;
}

constexpr std::string_view kOther = "BackoffLimitExceeded";

std::string rule(std::string_view action, std::string_view more = "") {
  return fmt::format(R"({{"maxRestarts":1,"rules":[{{"name":"r","action":"{}"{}}}]}})", action,
                     more);
}

INSTANTIATE_TEST_SUITE_P(
    Rows, FailurePolicy,
    ::testing::ValuesIn(std::vector<Row>{
        {.name = "without a policy it fails",
         .jobs = {job("a", 0).ready(), job("a", 1).failed()},
         .then = fails("FailedJobs",
                       "jobset failed due to one or more job failures (first failed job: "
                       "train-a-1)")},
        {.name = "names the Job that failed first",
         .jobs = {job("a", 0).failed(kOther, 5), job("b", 1).failed(kOther, 2),
                  job("b", 0).failed(kOther, 9)},
         .then = fails("FailedJobs",
                       "jobset failed due to one or more job failures (first failed job: "
                       "train-b-1)")},
        {.name = "a failure that is certain counts before its pods have ended",
         .jobs = {job("a", 0).failing("PodFailurePolicy", 1)},
         .then = fails("FailedJobs",
                       "jobset failed due to one or more job failures (first failed job: "
                       "train-a-0)")},
        {.name = "no restarts by default",
         .policy = "{}",
         .jobs = {job("a", 0).failed()},
         .then = fails("ReachedMaxRestarts",
                       "jobset failed due to reaching max number of restarts (first failed job: "
                       "train-a-0)")},
        {.name = "restarts",
         .policy = R"({"maxRestarts":2})",
         .status = R"({"restarts":3,"restartsCountTowardsMax":1})",
         .jobs = {job("a", 0).attempt(3).failed(), job("a", 1).attempt(3).ready()},
         .then = restarts(4, 2, "DefaultFailurePolicy", "RestartJobSet", "train-a-0")},
        {.name = "does not restart more often than it may",
         .policy = R"({"maxRestarts":2})",
         .status = R"({"restarts":3,"restartsCountTowardsMax":2})",
         .jobs = {job("a", 0).attempt(3).failed()},
         .then = fails("ReachedMaxRestarts",
                       "jobset failed due to reaching max number of restarts (first failed job: "
                       "train-a-0)")},
        {.name = "a failure of an earlier run is over",
         .policy = R"({"maxRestarts":2})",
         .status = R"({"restarts":1,"restartsCountTowardsMax":1,"replicatedJobsStatus":[
             {"name":"a","ready":0,"succeeded":0,"failed":0,"active":0,"suspended":0},
             {"name":"b","ready":0,"succeeded":0,"failed":0,"active":0,"suspended":0}]})",
         .jobs = {job("a", 0).failed(), job("a", 1).ready(), job("b", 0).ready(),
                  job("b", 1).deleting_since(seconds(30))},
         .then = {"delete Job train-a-0 in the background",
                  "delete Job train-a-1 in the background",
                  "delete Job train-b-0 in the background", "again in 300s"}},
        {.name = "deletes in the foreground when it blocks",
         .policy = R"({"maxRestarts":2,"restartStrategy":"BlockingRecreate"})",
         .status = R"({"restarts":1,"restartsCountTowardsMax":1,"replicatedJobsStatus":[
             {"name":"a","ready":0,"succeeded":0,"failed":0,"active":0,"suspended":0},
             {"name":"b","ready":0,"succeeded":0,"failed":0,"active":0,"suspended":0}]})",
         .jobs = {job("a", 0).failed()},
         .then = {"delete Job train-a-0"}},
        {.name = "makes a Job again as soon as its name is free",
         .policy = R"({"maxRestarts":2})",
         .status = R"({"restarts":1,"restartsCountTowardsMax":1,"replicatedJobsStatus":[
             {"name":"a","ready":0,"succeeded":0,"failed":0,"active":0,"suspended":0},
             {"name":"b","ready":0,"succeeded":0,"failed":0,"active":0,"suspended":0}]})",
         .jobs = {job("a", 0).deleting_since(seconds(30))},
         .then = {"create Job train-a-1", "create Job train-b-0", "create Job train-b-1",
                  "again in 300s"}},
        {.name = "makes none before all are gone when it blocks",
         .policy = R"({"maxRestarts":2,"restartStrategy":"BlockingRecreate"})",
         .status = R"({"restarts":1,"restartsCountTowardsMax":1,"replicatedJobsStatus":[
             {"name":"a","ready":0,"succeeded":0,"failed":0,"active":0,"suspended":0},
             {"name":"b","ready":0,"succeeded":0,"failed":0,"active":0,"suspended":0}]})",
         .jobs = {job("a", 0).deleting_since(seconds(30))},
         .then = {}},
        {.name = "does not wait for ever for pods of a lost node",
         .policy = R"({"maxRestarts":2})",
         .status = R"({"restarts":1,"restartsCountTowardsMax":1,"replicatedJobsStatus":[
             {"name":"a","ready":0,"succeeded":0,"failed":0,"active":1,"suspended":0},
             {"name":"b","ready":0,"succeeded":0,"failed":0,"active":2,"suspended":0}]})",
         .jobs = {job("a", 0).deleting_since(seconds(330)), job("a", 1).attempt(1).running(),
                  job("b", 0).attempt(1).running(), job("b", 1).attempt(1).running()},
         .then = {R"(patch train-a-0 {"metadata":{"finalizers":[]}})"}},
        {.name = "waits for ever where it promised to block",
         .policy = R"({"maxRestarts":2,"restartStrategy":"BlockingRecreate"})",
         .status = R"({"restarts":1,"restartsCountTowardsMax":1,"replicatedJobsStatus":[
             {"name":"a","ready":0,"succeeded":0,"failed":0,"active":0,"suspended":0},
             {"name":"b","ready":0,"succeeded":0,"failed":0,"active":0,"suspended":0}]})",
         .jobs = {job("a", 0).deleting_since(hours(3))},
         .then = {}},
        {.name = "the restart is over when all are ready",
         .policy = R"({"maxRestarts":2})",
         .status = R"({"restarts":1,"restartsCountTowardsMax":1,"conditions":[
             {"type":"RestartingJobSet","status":"True","reason":"DefaultFailurePolicy",
              "message":"m","lastTransitionTime":"2026-03-01T11:00:00Z"}]})",
         .jobs = {job("a", 0).attempt(1).ready(), job("a", 1).attempt(1).ready(),
                  job("b", 0).attempt(1).ready(), job("b", 1).attempt(1).succeeded()},
         .then = {"condition RestartingJobSet=False/JobsReady",
                  "event Normal JobsReady: all jobs are ready"}},
        {.name = "a rule fails the JobSet",
         .policy = rule("FailJobSet"),
         .jobs = {job("a", 0).failed()},
         .then = fails("FailJobSetFailurePolicyAction",
                       "applying FailJobSet failure policy action (first failed job: train-a-0)")},
        {.name = "a rule restarts and is named",
         .policy = rule("RestartJobSet"),
         .jobs = {job("a", 0).failed()},
         .then = restarts(1, 1, "FailurePolicy_r", "RestartJobSet", "train-a-0")},
        {.name = "a rule without a name is known by its place",
         .policy = R"({"maxRestarts":1,"rules":[{"action":"RestartJobSet"}]})",
         .jobs = {job("a", 0).failed()},
         .then = restarts(1, 1, "FailurePolicy_failurePolicyRule0", "RestartJobSet", "train-a-0")},
        {.name = "a rule restarts beyond the limit",
         .policy = rule("RestartJobSetAndIgnoreMaxRestarts"),
         .status = R"({"restarts":7,"restartsCountTowardsMax":1})",
         .jobs = {job("a", 0).attempt(7).failed()},
         .then = restarts(8, 0, "FailurePolicy_r", "RestartJobSetAndIgnoreMaxRestarts",
                          "train-a-0")},
        {.name = "a rule for another reason does not match",
         .policy = rule("FailJobSet", R"(,"onJobFailureReasons":["DeadlineExceeded"])"),
         .jobs = {job("a", 0).failed(kOther)},
         .then = restarts(1, 1, "DefaultFailurePolicy", "RestartJobSet", "train-a-0")},
        {.name = "a rule for this reason matches",
         .policy = rule("FailJobSet",
                        R"(,"onJobFailureReasons":["DeadlineExceeded","PodFailurePolicy"])"),
         .jobs = {job("a", 0).failed(kOther, 1), job("a", 1).failed("PodFailurePolicy", 8)},
         .then = fails("FailJobSetFailurePolicyAction",
                       "applying FailJobSet failure policy action (first failed job: train-a-1)")},
        {.name = "a rule for a message matches anywhere in it",
         .policy = rule("FailJobSet",
                        R"(,"onJobFailureMessagePatterns":["^x$","exit code 4[0-9]"])"),
         .jobs = {job("a", 0).failed(kOther, 1, "Container c failed with exit code 42.")},
         .then = fails("FailJobSetFailurePolicyAction",
                       "applying FailJobSet failure policy action (first failed job: train-a-0)")},
        {.name = "a rule for another message does not match",
         .policy = rule("FailJobSet", R"(,"onJobFailureMessagePatterns":["exit code 4[0-9]"])"),
         .jobs = {job("a", 0).failed(kOther, 1, "exit code 1")},
         .then = restarts(1, 1, "DefaultFailurePolicy", "RestartJobSet", "train-a-0")},
        // Another controller than Kubernetes' own may set FailureTarget and say why in Failed only.
        {.name = "a rule matches the reason of Failed where FailureTarget has none",
         .policy = rule("FailJobSet", R"(,"onJobFailureReasons":["PodFailurePolicy"])"),
         .jobs = {job("a", 0).failing("", 1).failed("PodFailurePolicy", 2)},
         .then = fails("FailJobSetFailurePolicyAction",
                       "applying FailJobSet failure policy action (first failed job: train-a-0)")},
        {.name = "a rule matches the message of Failed where FailureTarget has none",
         .policy = rule("FailJobSet", R"(,"onJobFailureMessagePatterns":["exit code 4[0-9]"])"),
         .jobs = {job("a", 0).failing(kOther, 1).failed(kOther, 2, "exit code 42")},
         .then = fails("FailJobSetFailurePolicyAction",
                       "applying FailJobSet failure policy action (first failed job: train-a-0)")},
        {.name = "a rule matches what FailureTarget says before what Failed says",
         .policy = rule("FailJobSet", R"(,"onJobFailureReasons":["PodFailurePolicy"],
             "onJobFailureMessagePatterns":["exit code 4[0-9]"])"),
         .jobs = {job("a", 0)
                      .failing("PodFailurePolicy", 1, "exit code 42")
                      .failed(kOther, 2, "exit code 1")},
         .then = fails("FailJobSetFailurePolicyAction",
                       "applying FailJobSet failure policy action (first failed job: train-a-0)")},
        {.name = "a FailureTarget that does not say why waits for Failed",
         .policy = rule("FailJobSet", R"(,"onJobFailureReasons":["PodFailurePolicy"])"),
         .status = R"({"restarts":0,"replicatedJobsStatus":[
             {"name":"a","ready":0,"succeeded":0,"failed":0,"active":2,"suspended":0},
             {"name":"b","ready":0,"succeeded":0,"failed":0,"active":2,"suspended":0}]})",
         .jobs = {job("a", 0).failing("", 1), job("a", 1).running(), job("b", 0).running(),
                  job("b", 1).running()},
         .then = {}},
        {.name = "a rule for another ReplicatedJob does not match",
         .policy = rule("FailJobSet", R"(,"targetReplicatedJobs":["b"])"),
         .jobs = {job("a", 0).failed()},
         .then = restarts(1, 1, "DefaultFailurePolicy", "RestartJobSet", "train-a-0")},
        {.name = "the first rule that matches wins over the first failure",
         .policy = R"({"maxRestarts":1,"rules":[
             {"name":"one","action":"FailJobSet","targetReplicatedJobs":["b"]},
             {"name":"two","action":"RestartJobSet"}]})",
         .jobs = {job("a", 0).failed(kOther, 1), job("b", 0).failed(kOther, 2)},
         .then = fails("FailJobSetFailurePolicyAction",
                       "applying FailJobSet failure policy action (first failed job: train-b-0)")},
    }),
    title);

std::string row(std::string_view name, std::string_view restarts) {
  return fmt::format(
      R"({{"name":"{}","ready":0,"succeeded":0,"failed":0,"active":0,"suspended":0{}}})", name,
      restarts);
}

World world_of(std::string_view policy, std::string_view restarts_of_a, std::vector<job> jobs) {
  World world{.jobset =
                  make_jobset(fmt::format(R"({{"replicatedJobs":[{},{}],"failurePolicy":{}}})",
                                          replicated("a", 2), replicated("b", 1), policy),
                              fmt::format(R"({{"restarts":0,"replicatedJobsStatus":[{},{}]}})",
                                          row("a", restarts_of_a), row("b", "")))};
  for (const auto& j : jobs) world.jobs.push_back(j.get());
  return world;
}

TEST(RestartJob, RestartsTheFailedJobAlone) {
  const auto world =
      world_of(rule("RestartJob"), "",
               {job("a", 0).own_attempt(0).ready(), job("a", 1).own_attempt(0).failed(),
                job("b", 0).own_attempt(0).ready()});
  const auto plan = world.plan();
  ASSERT_TRUE(plan.status);
  EXPECT_EQ(to_text(*at(plan.status->body, "status", "replicatedJobsStatus")),
            R"([{"name":"a","ready":1,"succeeded":0,"failed":1,"active":1,"suspended":0,)"
            R"("jobRestarts":[0,1],"jobRestartsCountTowardsMax":[0,1]},)"
            R"({"name":"b","ready":1,"succeeded":0,"failed":0,"active":1,"suspended":0}])");
  EXPECT_EQ(plan.events.size(), 1U);
  EXPECT_EQ(plan.events[0].reason, "RestartJobFailurePolicyAction");
  EXPECT_EQ(plan.events[0].message,
            "applying RestartJob failure policy action (first failed job: train-a-1)");
}

TEST(RestartJob, DeletesTheFailedOneAndLeavesTheOthers) {
  const auto world =
      world_of(rule("RestartJob"), R"(,"jobRestarts":[0,1])",
               {job("a", 0).own_attempt(0).ready(), job("a", 1).own_attempt(0).failed(),
                job("b", 0).own_attempt(0).ready()});
  EXPECT_THAT(lines_of(world.plan()),
              ::testing::ElementsAre("delete Job train-a-1 in the background"));
}

TEST(RestartJob, MakesItAgainWithItsOwnAttempt) {
  const auto world =
      world_of(rule("RestartJob"), R"(,"jobRestarts":[0,1])",
               {job("a", 0).own_attempt(0).ready(), job("b", 0).own_attempt(0).ready()});
  const auto plan = world.plan();
  ASSERT_EQ(plan.stages.size(), 1U);
  const auto& create = std::get<runtime::Create>(plan.stages[0].at(0));
  const Json job = create.object.make();
  EXPECT_EQ(string_or(at(job, "metadata", "labels", keys::kJobRestartAttempt)), "1");
}

TEST(RestartJob, SharesTheLimitWithRestartsOfAll) {
  const auto world = world_of(rule("RestartJob"), R"(,"jobRestartsCountTowardsMax":[1,0])",
                              {job("a", 1).own_attempt(0).failed()});
  EXPECT_EQ(world.plan().events.at(0).reason, "ReachedMaxRestarts");
}

TEST(RestartJob, CanIgnoreTheLimit) {
  const auto world = world_of(rule("RestartJobAndIgnoreMaxRestarts"),
                              R"(,"jobRestarts":[4,0],"jobRestartsCountTowardsMax":[1,0])",
                              {job("a", 0).own_attempt(4).failed()});
  const auto plan = world.plan();
  ASSERT_TRUE(plan.status);
  const Json& a = at(plan.status->body, "status", "replicatedJobsStatus")->as_array()[0];
  EXPECT_EQ(to_text(*find(a, "jobRestarts")), "[5,0]");
  EXPECT_EQ(to_text(*find(a, "jobRestartsCountTowardsMax")), "[1,0]");
}

}  // namespace
}  // namespace grapnel::jobset
