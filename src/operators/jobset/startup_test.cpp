#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "operators/jobset/world_test.h"

namespace grapnel::jobset {
namespace {

using namespace testing;
using ::testing::ElementsAreArray;

struct Row {
  std::string_view name;
  std::string spec;
  std::string status = R"({"restarts":0})";
  std::vector<job> jobs;
  std::vector<std::string> then;
};

void PrintTo(const Row& row, std::ostream* out) {
  *out << row.name;
}

class Startup : public ::testing::TestWithParam<Row> {};

TEST_P(Startup, Does) {
  const Row& row = GetParam();
  World world{.jobset = make_jobset(row.spec, row.status)};
  for (const auto& j : row.jobs) world.jobs.push_back(j.get());
  EXPECT_THAT(lines_of(world.plan()), ElementsAreArray(row.then));
}

std::string title(const ::testing::TestParamInfo<Row>& info) {
  std::string text;
  for (const char c : info.param.name) text += std::isalnum(c) ? c : '_';
  return text;
}

std::string in_order(std::string_view more = "") {
  return fmt::format(
      R"({{"replicatedJobs":[{},{}],"startupPolicy":{{"startupPolicyOrder":"InOrder"}}{}}})",
      replicated("a", 2), replicated("b", 1), more);
}

std::string condition(std::string_view type, std::string_view reason, std::string_view message) {
  return fmt::format(R"({{"type":"{}","status":"True","reason":"{}","message":"{}",
      "lastTransitionTime":"2026-03-01T11:00:00Z"}})",
                     type, reason, message);
}

const std::string kInProgress =
    R"({"restarts":0,"conditions":[)" +
    condition("StartupPolicyInProgress", "InOrderStartupPolicyInProgress",
              "in order startup policy is in progress") +
    "]}";
const std::string kSuspendedStatus =
    R"({"restarts":0,"conditions":[)" +
    condition("Suspended", "SuspendedJobs", "jobset is suspended") + "]}";

INSTANTIATE_TEST_SUITE_P(
    InOrder, Startup,
    ::testing::ValuesIn(std::vector<Row>{
        {.name = "begins with the first",
         .spec = in_order(),
         .then = {"create Job train-a-0", "create Job train-a-1",
                  "condition StartupPolicyInProgress=True/InOrderStartupPolicyInProgress",
                  "event Normal InOrderStartupPolicyInProgress: in order startup policy is in "
                  "progress"}},
        {.name = "waits until all of the first are ready",
         .spec = in_order(),
         .status = kInProgress,
         .jobs = {job("a", 0).ready(), job("a", 1).running()},
         .then = {}},
        {.name = "goes on when they are, or have ended",
         .spec = in_order(),
         .status = kInProgress,
         .jobs = {job("a", 0).ready(), job("a", 1).succeeded()},
         .then = {"create Job train-b-0"}},
        {.name = "is complete when the last is ready",
         .spec = in_order(),
         .status = kInProgress,
         .jobs = {job("a", 0).ready(), job("a", 1).ready(), job("b", 0).ready()},
         .then = {"condition StartupPolicyInProgress=False/InOrderStartupPolicyInProgress",
                  "condition StartupPolicyCompleted=True/InOrderStartupPolicyCompleted",
                  "event Normal InOrderStartupPolicyCompleted: in order startup policy has "
                  "completed"}},
        {.name = "resumes the first only",
         .spec = in_order(),
         .status = kSuspendedStatus,
         .jobs = {job("a", 0).suspended(), job("a", 1).suspended(), job("b", 0).suspended()},
         .then = {R"(patch train-a-0 {"spec":{"suspend":false}})",
                  R"(patch train-a-1 {"spec":{"suspend":false}})",
                  "condition Suspended=True/SuspendedJobs",
                  "condition StartupPolicyInProgress=True/InOrderStartupPolicyInProgress",
                  "event Normal InOrderStartupPolicyInProgress: in order startup policy is in "
                  "progress"}},
        {.name = "resumes the next when the first are ready",
         .spec = in_order(),
         .status = kInProgress,
         .jobs = {job("a", 0).ready(), job("a", 1).ready(), job("b", 0).suspended()},
         .then = {R"(patch train-b-0 {"spec":{"suspend":false}})"}},
        {.name = "says nothing of the order while suspended",
         .spec = in_order(R"(,"suspend":true)"),
         .status = kSuspendedStatus,
         .jobs = {job("a", 0).suspended()},
         .then = {}},
    }),
    title);

std::string depends(std::string_view status) {
  return fmt::format(
      R"({{"replicatedJobs":[{},{},{}]}})", replicated("a", 2), replicated("free", 1),
      replicated("b", 1, fmt::format(R"(,"dependsOn":[{{"name":"a","status":"{}"}}])", status)));
}

INSTANTIATE_TEST_SUITE_P(
    DependsOn, Startup,
    ::testing::ValuesIn(std::vector<Row>{
        {.name = "makes what depends on nothing",
         .spec = depends("Ready"),
         .then = {"create Job train-a-0", "create Job train-a-1", "create Job train-free-0"}},
        {.name = "waits until all are ready",
         .spec = depends("Ready"),
         .jobs = {job("a", 0).ready(), job("a", 1).running(), job("free", 0).ready()},
         .then = {}},
        {.name = "goes on when all are ready or ended",
         .spec = depends("Ready"),
         .jobs = {job("a", 0).ready(), job("a", 1).succeeded(), job("free", 0).ready()},
         .then = {"create Job train-b-0"}},
        {.name = "ready is not complete",
         .spec = depends("Complete"),
         .jobs = {job("a", 0).ready(), job("a", 1).succeeded(), job("free", 0).ready()},
         .then = {}},
        {.name = "goes on when all are complete",
         .spec = depends("Complete"),
         .jobs = {job("a", 0).succeeded(), job("a", 1).succeeded(), job("free", 0).ready()},
         .then = {"create Job train-b-0"}},
        {.name = "resumes only what it may",
         .spec = depends("Complete"),
         .status = kSuspendedStatus,
         .jobs = {job("a", 0).suspended(), job("a", 1).succeeded(), job("b", 0).suspended(),
                  job("free", 0).ready()},
         .then = {R"(patch train-a-0 {"spec":{"suspend":false}})",
                  "condition Suspended=False/ResumeJobs",
                  "event Normal ResumeJobs: jobset is resumed"}},
    }),
    title);

std::string elastic(int parallelism, int completions, std::string_view mode = "Indexed") {
  return fmt::format(
      R"({{"replicatedJobs":[{}]}})",
      replicated("a", 2, "",
                 fmt::format(R"("parallelism":{},"completions":{},"completionMode":"{}",)",
                             parallelism, completions, mode)));
}

INSTANTIATE_TEST_SUITE_P(
    Elastic, Startup,
    ::testing::ValuesIn(std::vector<Row>{
        {.name = "scales running Jobs",
         .spec = elastic(3, 3),
         .jobs = {job("a", 0).pods(2).ready(), job("a", 1).pods(3).ready()},
         .then = {R"(patch train-a-0 {"spec":{"parallelism":3,"completions":3}})"}},
        {.name = "scales no finished Job",
         .spec = elastic(3, 3),
         .jobs = {job("a", 0).pods(2).succeeded(), job("a", 1).pods(3).ready()},
         .then = {}},
        {.name = "does not scale where the counts differ",
         .spec = elastic(2, 5),
         .jobs = {job("a", 0).pods(2).ready(), job("a", 1).pods(2).ready()},
         .then = {}},
        {.name = "does not scale what is not Indexed",
         .spec = elastic(3, 3, "NonIndexed"),
         .jobs = {job("a", 0).pods(2).ready(), job("a", 1).pods(2).ready()},
         .then = {}},
    }),
    title);

constexpr std::string_view kClaims = R"({"volumeClaimPolicies":[
    {"templates":[{"metadata":{"name":"data","labels":{"l":"1"},"annotations":{"a":"2"}},
                   "spec":{"accessModes":["ReadWriteMany"]}}]},
    {"templates":[{"metadata":{"name":"kept"},"spec":{}}],
     "retentionPolicy":{"whenDeleted":"Retain"}}],
    "replicatedJobs":[{"name":"w","template":{"spec":{"template":{"spec":{"containers":[
      {"name":"c","volumeMounts":[{"name":"data","mountPath":"/d"},
                                  {"name":"kept","mountPath":"/k"}]}]}}}}}]})";

TEST(VolumeClaims, AreMadeBeforeTheJobs) {
  const World world{.jobset = make_jobset(kClaims)};
  const auto plan = world.plan();
  EXPECT_THAT(lines_of(plan), ElementsAreArray({"create PersistentVolumeClaim data-train",
                                                "create PersistentVolumeClaim kept-train", "then",
                                                "create Job train-w-0", "status restarts=0"}));
  const Json data = std::get<runtime::Create>(plan.stages[0][0]).object.make();
  EXPECT_EQ(to_text(*at(data, "metadata", "labels")),
            R"({"l":"1","jobset.sigs.k8s.io/jobset-name":"train"})");
  EXPECT_EQ(to_text(*at(data, "metadata", "annotations")), R"({"a":"2"})");
  EXPECT_EQ(to_text(*at(data, "spec")), R"({"accessModes":["ReadWriteMany"]})");
  EXPECT_NE(at(data, "metadata", "ownerReferences"), nullptr);
  const Json kept = std::get<runtime::Create>(plan.stages[0][1]).object.make();
  EXPECT_EQ(at(kept, "metadata", "ownerReferences"), nullptr);
}

TEST(VolumeClaims, AreNotMadeTwice) {
  const World world{.jobset = make_jobset(kClaims)};
  Observed observed = world.observed();
  observed.claims = {"data-train", "kept-train"};
  EXPECT_THAT(lines_of(plan(observed, kNow)),
              ElementsAreArray({"create Job train-w-0", "status restarts=0"}));
}

TEST(Network, ServiceIsHeadlessAndSelectsAllPods) {
  const World world{
      .jobset = make_jobset(
          fmt::format(R"({{"replicatedJobs":[{}],"network":{{"publishNotReadyAddresses":false}}}})",
                      replicated("w", 1))),
      .has_service = false};
  const auto plan = world.plan();
  const Json service = std::get<runtime::Create>(plan.stages[0][0]).object.make();
  EXPECT_TRUE(equal(service, json(fmt::format(R"({{"apiVersion":"v1","kind":"Service",
      "metadata":{{"name":"train","namespace":"ml","ownerReferences":[
        {{"apiVersion":"jobset.x-k8s.io/v1alpha2","kind":"JobSet","name":"train","uid":"{}",
         "controller":true,"blockOwnerDeletion":true}}]}},
      "spec":{{"clusterIP":"None","publishNotReadyAddresses":false,
               "selector":{{"jobset.sigs.k8s.io/jobset-name":"train"}}}}}})",
                                              kUid))))
      << to_pretty_text(service);
}

}  // namespace
}  // namespace grapnel::jobset
