#include "operators/jobset/plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "operators/jobset/world_test.h"

namespace grapnel::jobset {
namespace {

using namespace testing;
using ::testing::ElementsAreArray;

// One rule of the JobSet controller: what it sees, and what it does.
struct Row {
  std::string_view name;
  std::string spec;
  std::string status = "{}";
  std::vector<job> jobs;
  bool has_service = true;
  std::string metadata;
  std::vector<std::string> then;
};

void PrintTo(const Row& row, std::ostream* out) {
  *out << row.name;
}

class JobSetPlan : public ::testing::TestWithParam<Row> {};

TEST_P(JobSetPlan, Does) {
  const Row& row = GetParam();
  World world{.jobset = make_jobset(row.spec, row.status, row.metadata),
              .has_service = row.has_service};
  for (const auto& j : row.jobs) world.jobs.push_back(j.get());
  EXPECT_THAT(lines_of(world.plan()), ElementsAreArray(row.then));
}

std::string title(const ::testing::TestParamInfo<Row>& info) {
  std::string text;
  for (const char c : info.param.name) text += std::isalnum(c) ? c : '_';
  return text;
}

std::string spec(std::string_view jobs, std::string_view more = "") {
  return fmt::format(R"({{"replicatedJobs":[{}]{}}})", jobs, more);
}

const std::string kOne = spec(replicated("w", 1));
const std::string kTwo = spec(replicated("w", 2));

INSTANTIATE_TEST_SUITE_P(
    Creating, JobSetPlan,
    ::testing::ValuesIn(std::vector<Row>{
        {.name = "makes the service, then all Jobs",
         .spec = spec(replicated("leader", 1) + "," + replicated("w", 2)),
         .has_service = false,
         .then = {"create Service train", "then", "create Job train-leader-0",
                  "create Job train-w-0", "create Job train-w-1", "status restarts=0"}},
        {.name = "makes only what is missing",
         .spec = kTwo,
         .status = R"({"restarts":0,"replicatedJobsStatus":[{"name":"w","ready":0,"succeeded":0,
             "failed":0,"active":1,"suspended":0}]})",
         .jobs = {job("w", 1).running()},
         .then = {"create Job train-w-0"}},
        {.name = "is at rest when nothing is to be done",
         .spec = kOne,
         .status = R"({"restarts":0,"replicatedJobsStatus":[{"name":"w","ready":1,"succeeded":0,
             "failed":0,"active":1,"suspended":0}]})",
         .jobs = {job("w", 0).ready()},
         .then = {}},
        {.name = "names the service after the subdomain",
         .spec = spec(replicated("w", 1), R"(,"network":{"subdomain":"net"})"),
         .has_service = false,
         .then = {"create Service net", "then", "create Job train-w-0", "status restarts=0"}},
        {.name = "makes no service without DNS hostnames",
         .spec = spec(replicated("w", 1), R"(,"network":{"enableDNSHostnames":false})"),
         .has_service = false,
         .then = {"create Job train-w-0", "status restarts=0"}},
        {.name = "leaves alone a name that is taken by an unlabelled Job",
         .spec = kTwo,
         .jobs = {job("w", 0).unlabelled()},
         .then = {"create Job train-w-1", "status restarts=0"}},
        {.name = "makes a Job whose place another has by its labels",
         .spec = kTwo,
         .jobs = {job("w", 0), job("w", 7).labelled(1)},
         .then = {"create Job train-w-1", "status restarts=0"}},
        {.name = "does nothing for another manager",
         .spec = spec(replicated("w", 1), R"(,"managedBy":"kueue.x-k8s.io/multikueue")"),
         .then = {}},
        {.name = "is its own manager by name",
         .spec = spec(replicated("w", 1), R"(,"managedBy":"jobset.sigs.k8s.io/jobset-controller")"),
         .then = {"create Job train-w-0", "status restarts=0"}},
        {.name = "does nothing while it is being deleted",
         .spec = kOne,
         .metadata = R"(,"deletionTimestamp":"2026-03-01T11:59:00Z")",
         .then = {}},
        {.name = "makes nothing of zero replicas",
         .spec = spec(replicated("w", 0)),
         .then = {"status restarts=0"}},
    }),
    title);

INSTANTIATE_TEST_SUITE_P(
    SuccessPolicy, JobSetPlan,
    ::testing::ValuesIn(std::vector<Row>{
        {.name = "completes when all Jobs have",
         .spec = kTwo,
         .jobs = {job("w", 0).succeeded(), job("w", 1).succeeded()},
         .then = {"condition Completed=True/AllJobsCompleted", "status restarts=0",
                  "status terminalState=\"Completed\"",
                  "event Normal AllJobsCompleted: jobset completed successfully",
                  "count jobset_completed_total"}},
        {.name = "waits for the last one",
         .spec = kTwo,
         .jobs = {job("w", 0).succeeded(), job("w", 1).ready()},
         .then = {"status restarts=0"}},
        {.name = "completes with any of the target",
         .spec = spec(replicated("a", 2) + "," + replicated("b", 2),
                      R"(,"successPolicy":{"operator":"Any","targetReplicatedJobs":["b"]})"),
         .jobs = {job("a", 0).ready(), job("a", 1).ready(), job("b", 0).ready(),
                  job("b", 1).succeeded()},
         .then = {"condition Completed=True/AllJobsCompleted", "status restarts=0",
                  "status terminalState=\"Completed\"",
                  "event Normal AllJobsCompleted: jobset completed successfully",
                  "count jobset_completed_total"}},
        {.name = "does not complete with any of another",
         .spec = spec(replicated("a", 1) + "," + replicated("b", 1),
                      R"(,"successPolicy":{"operator":"Any","targetReplicatedJobs":["b"]})"),
         .jobs = {job("a", 0).succeeded(), job("b", 0).ready()},
         .then = {"status restarts=0"}},
        {.name = "completes with all of the target",
         .spec = spec(replicated("a", 1) + "," + replicated("b", 1),
                      R"(,"successPolicy":{"operator":"All","targetReplicatedJobs":["a"]})"),
         .jobs = {job("a", 0).succeeded(), job("b", 0).ready()},
         .then = {"condition Completed=True/AllJobsCompleted", "status restarts=0",
                  "status terminalState=\"Completed\"",
                  "event Normal AllJobsCompleted: jobset completed successfully",
                  "count jobset_completed_total"}},
        {.name = "ends a restart when it completes",
         .spec = kOne,
         .status = R"({"restarts":1,"restartsCountTowardsMax":1,"conditions":[
             {"type":"RestartingJobSet","status":"True","reason":"DefaultFailurePolicy",
              "message":"m","lastTransitionTime":"2026-03-01T11:00:00Z"}]})",
         .jobs = {job("w", 0).attempt(1).succeeded()},
         // All Jobs are ready first, as for the original; then it is complete.
         .then = {"condition RestartingJobSet=False/JobSetCompleted",
                  "condition Completed=True/AllJobsCompleted", "status terminalState=\"Completed\"",
                  "event Normal JobsReady: all jobs are ready",
                  "event Normal AllJobsCompleted: jobset completed successfully",
                  "event Normal JobSetCompleted: jobset completed successfully",
                  "count jobset_completed_total"}},
    }),
    title);

const std::string kFinished = R"({"restarts":0,"terminalState":"Completed","conditions":[
    {"type":"Completed","status":"True","reason":"AllJobsCompleted","message":"m",
     "lastTransitionTime":"2026-03-01T11:59:30Z"}],
    "replicatedJobsStatus":[{"name":"w","ready":0,"succeeded":1,"failed":0,"active":0,
    "suspended":0}]})";

INSTANTIATE_TEST_SUITE_P(Finished, JobSetPlan,
                         ::testing::ValuesIn(std::vector<Row>{
                             {.name = "deletes what is still active and keeps the rest",
                              .spec = spec(replicated("w", 2)),
                              .status = kFinished,
                              .jobs = {job("w", 0).succeeded(), job("w", 1).running()},
                              .then = {"delete Job train-w-1 in the background"}},
                             {.name = "does not delete twice",
                              .spec = spec(replicated("w", 2)),
                              .status = kFinished,
                              .jobs = {job("w", 0).succeeded(),
                                       job("w", 1).running().deleting_since(seconds(1))},
                              .then = {}},
                             {.name = "creates nothing any more",
                              .spec = spec(replicated("w", 2)),
                              .status = kFinished,
                              .jobs = {job("w", 0).succeeded()},
                              .then = {}},
                             {.name = "comes back when its time is over",
                              .spec = spec(replicated("w", 1), R"(,"ttlSecondsAfterFinished":100)"),
                              .status = kFinished,
                              .jobs = {job("w", 0).succeeded()},
                              .then = {"again in 70s"}},
                             {.name = "is deleted when its time is over",
                              .spec = spec(replicated("w", 1), R"(,"ttlSecondsAfterFinished":30)"),
                              .status = kFinished,
                              .jobs = {job("w", 0).succeeded()},
                              .then = {"delete JobSet train"}},
                             {.name = "is deleted at once with no time to live",
                              .spec = spec(replicated("w", 1), R"(,"ttlSecondsAfterFinished":0)"),
                              .status = kFinished,
                              .jobs = {job("w", 0).succeeded()},
                              .then = {"delete JobSet train"}},
                         }),
                         title);

const std::string kSuspended = R"(,"suspend":true)";
const std::string kWasSuspended = R"({"restarts":0,"conditions":[{"type":"Suspended",
    "status":"True","reason":"SuspendedJobs","message":"jobset is suspended",
    "lastTransitionTime":"2026-03-01T11:00:00Z"}]})";

// As a queue leaves it.
const std::string kQueued =
    R"({"replicatedJobs":[{"name":"w","template":{"spec":{"template":{
    "metadata":{"labels":{"l":"1"},"annotations":{"a":"2"}},
    "spec":{"nodeSelector":{"pool":"x"},"tolerations":[{"key":"t"},{"key":"u"}],
    "schedulingGates":[{"name":"g"}],"containers":[{"name":"c"}]}}}}}]})";

INSTANTIATE_TEST_SUITE_P(
    Suspend, JobSetPlan,
    ::testing::ValuesIn(std::vector<Row>{
        {.name = "makes nothing while suspended from the start",
         .spec = spec(replicated("w", 2), kSuspended),
         .has_service = false,
         .then = {"condition Suspended=True/SuspendedJobs", "status restarts=0",
                  "event Normal SuspendedJobs: jobset is suspended"}},
        {.name = "makes suspended Jobs where that is asked for",
         .spec = spec(replicated("w", 1), kSuspended),
         .has_service = false,
         .metadata = R"(,"annotations":{"grapnel.dev/create-suspended-jobs":"true"})",
         .then = {"create Service train", "then", "create Job train-w-0",
                  "condition Suspended=True/SuspendedJobs", "status restarts=0",
                  "event Normal SuspendedJobs: jobset is suspended"}},
        {.name = "suspends what runs",
         .spec = spec(replicated("w", 2), kSuspended),
         .jobs = {job("w", 0).ready(), job("w", 1).suspended()},
         .then = {R"(patch train-w-0 {"spec":{"suspend":true}})",
                  "condition Suspended=True/SuspendedJobs", "status restarts=0",
                  "event Normal SuspendedJobs: jobset is suspended"}},
        {.name = "makes the Jobs when it is let go",
         .spec = kOne,
         .status = kWasSuspended,
         .has_service = false,
         .then = {"create Service train", "then", "create Job train-w-0",
                  "condition Suspended=False/ResumeJobs",
                  "event Normal ResumeJobs: jobset is resumed"}},
        {.name = "resumes a Job that never started",
         .spec = kOne,
         .status = kWasSuspended,
         .jobs = {job("w", 0).suspended()},
         .then = {R"(patch train-w-0 {"spec":{"suspend":false}})",
                  "condition Suspended=False/ResumeJobs",
                  "event Normal ResumeJobs: jobset is resumed"}},
        {.name = "lets a Job that ran forget its start first",
         .spec = kOne,
         .status = kWasSuspended,
         .jobs = {job("w", 0).suspended().started()},
         .then = {R"(patch train-w-0/status {"status":{"startTime":null}})", "then",
                  R"(patch train-w-0 {"spec":{"suspend":false}})",
                  "condition Suspended=False/ResumeJobs",
                  "event Normal ResumeJobs: jobset is resumed"}},
        {.name = "a resumed Job runs where the queue says, and no longer where it said before",
         .spec = kQueued,
         .status = kWasSuspended,
         .jobs = {job("w", 0).suspended().runs_where(
             R"({"nodeSelector":{"pool":"old","flavor":"a"},"tolerations":[{"key":"t"},{"key":"o"}],
             "schedulingGates":[{"name":"old"}]})")},
         .then = {R"(patch train-w-0 {"spec":{"suspend":false,"template":{"metadata":)"
                  R"({"labels":{"l":"1"},"annotations":{"a":"2"}},"spec":{"nodeSelector":)"
                  R"({"pool":"x","flavor":null},"tolerations":[{"key":"t"},{"key":"u"}],)"
                  R"("schedulingGates":[{"name":"g"}]}}}})",
                  "condition Suspended=False/ResumeJobs",
                  "event Normal ResumeJobs: jobset is resumed"}},
        {.name = "a resumed Job that runs where it shall is not told again",
         .spec = kQueued,
         .status = kWasSuspended,
         .jobs = {job("w", 0).suspended().runs_where(
             R"({"nodeSelector":{"pool":"x"},"tolerations":[{"key":"t"},{"key":"u"}],
             "schedulingGates":[{"name":"g"}]})")},
         .then = {R"(patch train-w-0 {"spec":{"suspend":false,"template":{"metadata":)"
                  R"({"labels":{"l":"1"},"annotations":{"a":"2"}}}}})",
                  "condition Suspended=False/ResumeJobs",
                  "event Normal ResumeJobs: jobset is resumed"}},
        {.name = "a resumed Job runs anywhere when the queue says nothing any more",
         .spec = kOne,
         .status = kWasSuspended,
         .jobs = {job("w", 0).suspended().runs_where(
             R"({"nodeSelector":{"pool":"x"},"tolerations":[{"key":"t"}],
             "schedulingGates":[{"name":"g"}]})")},
         .then = {R"(patch train-w-0 {"spec":{"suspend":false,"template":{"spec":)"
                  R"({"nodeSelector":null,"tolerations":null,"schedulingGates":null}}}})",
                  "condition Suspended=False/ResumeJobs",
                  "event Normal ResumeJobs: jobset is resumed"}},
        {.name = "a resumed Job keeps the nodes that are its own",
         .spec = kOne,
         .status = kWasSuspended,
         .jobs = {job("w", 0).suspended().runs_where(
             R"({"nodeSelector":{"alpha.jobset.sigs.k8s.io/namespaced-job":"ml_train-w-0"},
             "tolerations":[{"key":"alpha.jobset.sigs.k8s.io/no-schedule","operator":"Exists",
             "effect":"NoSchedule"}]})")},
         .metadata = R"(,"annotations":{"alpha.jobset.sigs.k8s.io/exclusive-topology":"rack",
             "alpha.jobset.sigs.k8s.io/node-selector":"true"})",
         .then = {R"(patch train-w-0 {"spec":{"suspend":false}})",
                  "condition Suspended=False/ResumeJobs",
                  "event Normal ResumeJobs: jobset is resumed"}},
    }),
    title);

TEST(JobSetPlan, MakesThousandsOfJobsInSeveralPlans) {
  const World world{.jobset = make_jobset(spec(replicated("w", 5200)))};
  EXPECT_EQ(world.plan().stages.at(0).size(), 5000U);
}

TEST(JobSetPlan, WritesItsStatusOnlyOverTheVersionItSaw) {
  const World world{.jobset = make_jobset(kOne)};
  EXPECT_EQ(world.plan().status->if_version, 7U);
}

TEST(JobSetPlan, CountsThousandsOfJobsLessOften) {
  const auto pause = [](int replicas) {
    return World{.jobset = make_jobset(spec(replicated("w", replicas)))}.plan().between_counts;
  };
  EXPECT_EQ(pause(1), milliseconds(200));
  EXPECT_EQ(pause(1999), milliseconds(200));
  EXPECT_EQ(pause(5000), seconds(1));
}

TEST(JobSetPlan, CountsTheJobsOfEachReplicatedJob) {
  World world{.jobset = make_jobset(spec(replicated("a", 4) + "," + replicated("b", 1)))};
  world.jobs = {job("a", 0).ready().get(), job("a", 1).pods(2).running().get(),
                job("a", 2).succeeded().get(), job("a", 3).suspended().get(),
                job("b", 0).ready().get()};
  const auto plan = world.plan();
  ASSERT_TRUE(plan.status);
  EXPECT_EQ(to_text(*at(plan.status->body, "status", "replicatedJobsStatus")),
            R"([{"name":"a","ready":1,"succeeded":1,"failed":0,"active":2,"suspended":1},)"
            R"({"name":"b","ready":1,"succeeded":0,"failed":0,"active":1,"suspended":0}])");
}

TEST(JobSetPlan, AnInvalidSpecFailsWithAReasonAndNoJobs) {
  World world{.jobset = make_jobset(
                  spec(replicated("w", 1), R"(,"coordinator":{"replicatedJob":"nobody"})"))};
  EXPECT_THAT(
      lines_of(world.plan()),
      ::testing::ElementsAre(
          "condition Failed=True/InvalidSpec", "status restarts=0",
          "status terminalState=\"Failed\"",
          ::testing::StartsWith("event Warning InvalidSpec: spec.coordinator.replicatedJob"),
          "count jobset_failed_total"));
}

struct RefusalRow {
  std::string_view what;
  Reason reason;
  std::vector<std::string> then;
};

TEST(JobSetPlan, ToldOfARefusalSaysSo) {
  const std::vector<RefusalRow> rows{
      {"create Job ml/train-w-0",
       Reason::kForbidden,
       {"status restarts=0",
        "event Warning JobCreationFailed: job \"train-w-0\" creation failed with error: why"}},
      {"create Service ml/train",
       Reason::kForbidden,
       {"status restarts=0",
        "event Warning HeadlessServiceCreationFailed: create Service ml/train: why"}},
      {"create PersistentVolumeClaim ml/data-train",
       Reason::kForbidden,
       {"status restarts=0",
        "event Warning PVCCreationFailed: create PersistentVolumeClaim ml/data-train: why"}},
      {"create Job ml/train-w-0",
       Reason::kInvalid,
       {"condition Failed=True/InvalidSpec", "status restarts=0", "status terminalState=\"Failed\"",
        "event Warning JobCreationFailed: job \"train-w-0\" creation failed with error: why",
        "event Warning InvalidSpec: create Job ml/train-w-0: why", "count jobset_failed_total"}},
  };
  for (const auto& row : rows) {
    const World world{.jobset = make_jobset(kOne)};
    const runtime::Refusal refusal{.what = std::string(row.what),
                                   .error = {.reason = row.reason, .message = "why"}};
    Observed observed = world.observed();
    observed.refused = &refusal;
    EXPECT_THAT(lines_of(plan(observed, kNow)), ElementsAreArray(row.then)) << row.what;
  }
}

}  // namespace
}  // namespace grapnel::jobset
