#include "operators/experiment/plan.h"

#include <gtest/gtest.h>

#include <deque>

namespace grapnel::experiment {
namespace {

const Time kNow = *parse_time("2026-01-01T00:10:00Z");

Json json(std::string_view text) {
  return parse_json(text).value();
}

constexpr std::string_view kSpec =
    R"({"operator":"jax","command":"x","types":{"worker":{"count":2,"resources":{"cpus":1,"ramRatio":1}}}})";

struct Case {
  std::string name;
  std::string spec{kSpec};  // merged over by `spec_patch`
  std::string spec_patch = "{}";
  std::string status = R"({"startTime":"2026-01-01T00:00:00Z",
      "child":{"apiVersion":"jobset.x-k8s.io/v1alpha2","kind":"JobSet","name":"e"}})";
  std::string child;                // status of the JobSet; "": there is none
  std::string child_owner = "u-e";  // uid of its controller
  std::string child_owner_kind = "Experiment";
  bool child_suspended = false;
  std::vector<std::string> pods;  // status of each; "deleting" in it: deletion was asked for
  std::vector<std::string> refusals = {};  // events of Job "j", which controls the pods
  std::string refused = "";                // what the server said to the last plan
  Reason refusal = Reason::kForbidden;
  std::string folders = "";
  bool has_tensorboard = false;
  // Expected.
  std::vector<std::string> writes;
  std::string phase;
  std::string message;
  int64_t exit_code = -1;
  bool writes_child = false;
};

class ExperimentPlan : public testing::TestWithParam<Case> {};

TEST_P(ExperimentPlan, Answers) {
  const Case& c = GetParam();
  Json object = json(R"({"metadata":{"name":"e","namespace":"ns","uid":"u-e","generation":1}})");
  Json spec = json(c.spec);
  const Json changes = json(c.spec_patch);
  for (const auto& [key, value] : changes.as_object()) spec.as_object()[key] = value;
  object.as_object()["spec"] = spec;
  object.as_object()["status"] = json(c.status);
  const auto experiment = api::decode_resource<api::Experiment>(object);
  ASSERT_TRUE(experiment) << experiment.error().message;
  Observed observed{.experiment = *experiment};
  if (!c.child.empty()) {
    Json text = json(R"({"metadata":{"name":"e","namespace":"ns","uid":"u-child","ownerReferences":
        [{"name":"e","controller":true}]},"spec":{"replicatedJobs":[]}})");
    text.at("metadata").at("ownerReferences").at(0).as_object()["uid"] = c.child_owner;
    text.at("metadata").at("ownerReferences").at(0).as_object()["kind"] = c.child_owner_kind;
    text.at("spec").as_object()["suspend"] = c.child_suspended;
    text.as_object()["status"] = json(c.child);
    observed.child = jobset_child_state(api::decode_jobset(text).value());
  }
  std::deque<api::Pod> pods;
  for (const auto& status : c.pods) {
    const std::string rank = std::to_string(pods.size());
    Json pod = json(R"({"metadata":{"namespace":"ns","labels":{"grapnel.dev/component":"worker"},
                 "creationTimestamp":"2026-01-01T00:05:00Z","ownerReferences":
                 [{"kind":"Job","name":"j","uid":"u-job","controller":true}]}})");
    pod.at("metadata").as_object()["name"] = "p" + rank;
    pod.at("metadata").at("labels").as_object()["batch.kubernetes.io/job-completion-index"] = rank;
    pod.as_object()["status"] = json(status);
    if (find(pod.at("status"), "deleting") != nullptr) {
      pod.at("metadata").as_object()["deletionTimestamp"] = "2026-01-01T00:09:00Z";
    }
    pods.push_back(api::decode_pod(pod, {.all_labels = true}).value());
    observed.pods.push_back(&pods.back());
  }

  std::deque<api::Event> refusals;
  for (const auto& text : c.refusals) {
    Json event = json(text);
    event.as_object()["metadata"] = json(R"({"name":"j.1","namespace":"ns"})");
    event.as_object()["regarding"] = json(R"({"kind":"Job","name":"j","uid":"u-job"})");
    refusals.push_back(api::decode_event(event).value());
    observed.refusals.push_back(&refusals.back());
  }

  observed.folders = c.folders;
  const api::Pod tensorboard =
      api::decode_pod(json(R"({"metadata":{"name":"e-tensorboard","namespace":"ns"}})"), {})
          .value();
  if (c.has_tensorboard) observed.tensorboard = &tensorboard;

  const runtime::Refusal refusal{.what = "create JobSet ns/e",
                                 .error = {.reason = c.refusal, .message = c.refused}};
  if (!c.refused.empty()) observed.refused = &refusal;

  const runtime::Plan p = plan(observed, kNow);

  std::vector<std::string> writes;
  for (const auto& stage : p.stages) {
    for (const auto& write : stage) {
      runtime::Plan one;
      one.add(write);
      writes.push_back(runtime::describe(one));
    }
  }
  EXPECT_EQ(writes, c.writes);
  Json after = api::encode(experiment->status);
  if (p.status) {
    for (const auto& [key, value] : at(p.status->body, "status")->as_object()) {
      after.as_object()[key] = value;
    }
  }
  if (c.writes_child) EXPECT_EQ(string_or(at(after, "child", "name")), "e");
  EXPECT_EQ(string_or(at(after, "phase")), c.phase);
  EXPECT_EQ(string_or(at(after, "message")), c.message);
  if (!c.refused.empty()) {
    EXPECT_EQ(at(after, "child"), nullptr) << "it was never made";
    ASSERT_EQ(p.events.size(), 1U);
    EXPECT_EQ(p.events[0].reason, "FailedCreate");
  }
  EXPECT_EQ(int_or(at(after, "exitCode"), -1), c.exit_code);
}

constexpr auto kReady = R"({"phase":"Running","conditions":[{"type":"Ready","status":"True"}]})";

INSTANTIATE_TEST_SUITE_P(
    Table, ExperimentPlan,
    testing::Values(
        Case{.name = "CreatesWhatItCompilesTo",
             .status = "{}",
             .writes = {"create JobSet ns/e\n"},
             .phase = "Pending",
             .message = "waiting for its processes to be created"},
        Case{.name = "SaysThatItMayNotBeCreatedAndForgetsNoChild",
             .status = "{}",
             .refused = "exceeded quota: jobs",
             .phase = "Pending",
             .message = "create JobSet ns/e: exceeded quota: jobs"},
        Case{.name = "EndsWhenItsChildBreaksTheRulesOfItsKind",
             .status = "{}",
             .refused = "admission webhook \"v\" denied the request: too long",
             .refusal = Reason::kInvalid,
             .phase = "Failed",
             .message = "create JobSet ns/e: admission webhook \"v\" denied the request: too long"},
        Case{.name = "TriesAgainWhereTheServerIsInTrouble",
             .status = "{}",
             .refused = "failed calling webhook",
             .refusal = Reason::kInternalError,
             .phase = "Pending",
             .message = "create JobSet ns/e: failed calling webhook"},
        Case{.name = "RefusesAnOperatorThatIsNotThere",
             .spec_patch = R"({"operator":"elastic"})",
             .status = "{}",
             .phase = "Failed",
             .message = "Experiment ns/e is invalid: spec.operator: operator 'elastic' is not "
                        "available in this version; available: jax, pytorch, xgboost, jobset"},
        Case{.name = "RefusesAnInvalidSpecForGood",
             .spec_patch = R"({"types":{"Worker":{}}})",
             .status = "{}",
             .phase = "Failed",
             .message = "Experiment ns/e is invalid: spec.types.Worker: unknown type for operator "
                        "'jax'"},
        Case{.name = "LeavesAForeignJobSetAlone",
             .status = "{}",
             .child = "{}",
             .child_owner = "somebody",
             .child_owner_kind = "Trial",
             .phase = "Failed",
             .message = "a JobSet of this name exists and belongs to somebody else; choose another "
                        "name"},
        Case{.name = "WritesDownTheChildThatItFinds",
             .status = "{}",
             .child = "{}",
             .phase = "Pending",
             .message = "0 of 2 processes are up",
             .writes_child = true},
        Case{.name = "WaitsForTheChildOfAnEarlierExperimentOfThisName",
             .status = "{}",
             .child = "{}",
             .child_owner = "u-earlier",
             .phase = "Pending",
             .message = "waiting until the JobSet of an earlier experiment of this name is gone"},
        Case{.name = "DoesNotWaitForItWhenItIsCancelled",
             .spec_patch = R"({"cancel":true})",
             .status = "{}",
             .child = "{}",
             .child_owner = "u-earlier",
             .phase = "Cancelled",
             .message = "cancelled on request"},
        Case{.name = "StartsATensorBoardBesideItself",
             .spec_patch = R"({"tensorboard":{"enabled":true}})",
             .child = "{}",
             .folders = "/state",
             .writes = {"create Pod ns/e-tensorboard\n"},
             .phase = "Pending",
             .message = "0 of 2 processes are up"},
        Case{.name = "HasOneTensorBoard",
             .spec_patch = R"({"tensorboard":{"enabled":true}})",
             .child = "{}",
             .folders = "/state",
             .has_tensorboard = true,
             .phase = "Pending",
             .message = "0 of 2 processes are up"},
        Case{.name = "TakesTheTensorBoardAwayAfterTheEnd",
             .status = R"({"phase":"Succeeded","endTime":"2026-01-01T00:09:00Z"})",
             .child = "{}",
             .folders = "/state",
             .has_tensorboard = true,
             .writes = {"delete Pod ns/e-tensorboard\n"},
             .phase = "Succeeded"},
        Case{.name = "SaysWhyAPodWaits",
             .child = "{}",
             .pods = {R"({"phase":"Pending","conditions":[{"type":"PodScheduled","status":"False",
                 "reason":"Unschedulable","message":"0/1 nodes are available: 1 Insufficient cpu."}]})"},
             .phase = "Pending",
             .message = "0 of 2 processes are up; worker 0 waits: 0/1 nodes are available: 1 "
                        "Insufficient cpu."},
        Case{.name = "SaysWhyPodsAreNotEvenCreated",
             .child = "{}",
             .refusals = {R"({"note":"Error creating: pods \"p\" is forbidden: exceeded quota: q",
                 "deprecatedLastTimestamp":"2026-01-01T00:05:00Z"})"},
             .phase = "Pending",
             .message = "0 of 2 processes are up; pods are refused: exceeded quota: q"},
        Case{.name = "SaysWhyTheRestOfThePodsIsNotCreated",
             .child = "{}",
             .pods = {kReady},
             .refusals = {R"({"note":"create Pod ns/p: no","eventTime":"2026-01-01T00:05:00Z",
                 "series":{"lastObservedTime":"2026-01-01T00:06:00Z"}})"},
             .phase = "Starting",
             .message = "1 of 2 processes are up; pods are refused: create Pod ns/p: no"},
        Case{.name = "TellsTheNewestRefusal",
             .child = "{}",
             .refusals = {R"({"note":"old","eventTime":"2026-01-01T00:05:00Z"})",
                          R"({"note":"(combined from similar events): Error creating: new",
                              "eventTime":"2026-01-01T00:07:00Z"})",
                          R"({"note":"older","eventTime":"2026-01-01T00:04:00Z"})"},
             .phase = "Pending",
             .message = "0 of 2 processes are up; pods are refused: new"},
        Case{.name = "ForgetsARefusalOnceAPodWasCreatedAfterIt",
             .child = "{}",
             .pods = {kReady},
             .refusals = {R"({"note":"no","eventTime":"2026-01-01T00:04:00Z"})"},
             .phase = "Starting",
             .message = "1 of 2 processes are up"},
        Case{.name = "WaitsToBeAdmittedWhateverItsJobsSaidBefore",
             .child = "{}",
             .child_suspended = true,
             .refusals = {R"({"note":"no","eventTime":"2026-01-01T00:06:00Z"})"},
             .phase = "Pending",
             .message = "waiting to be admitted"},
        Case{.name = "ForgetsARefusalOnceAllPodsAreThere",
             .child = "{}",
             .pods = {kReady, R"({"phase":"Pending"})"},
             .refusals = {R"({"note":"no","eventTime":"2026-01-01T00:06:00Z"})"},
             .phase = "Starting",
             .message = "1 of 2 processes are up"},
        Case{.name = "IsStartingWhileSomeAreUp",
             .child = "{}",
             .pods = {kReady, R"({"phase":"Pending"})"},
             .phase = "Starting",
             .message = "1 of 2 processes are up"},
        Case{.name = "RunsWhenAllAreUp",
             .child = "{}",
             .pods = {kReady, kReady},
             .phase = "Running",
             .message = "2 of 2 processes are up"},
        Case{.name = "SucceedsWithItsJobSet",
             .child =
                 R"({"conditions":[{"type":"Completed","status":"True","reason":"x","message":"",
                 "lastTransitionTime":"2026-01-01T00:00:00Z"}]})",
             .phase = "Succeeded",
             .message = "all processes ended well",
             .exit_code = 0},
        Case{.name = "NamesTheProcessThatFailed",
             .child = R"({"conditions":[{"type":"Failed","status":"True","reason":"FailedJobs",
                 "message":"m","lastTransitionTime":"2026-01-01T00:00:00Z"}]})",
             .pods = {R"({"phase":"Succeeded"})",
                      R"({"phase":"Failed","containerStatuses":[{"name":"worker","state":
                          {"terminated":{"exitCode":3,"reason":"Error"}}}]})"},
             .phase = "Failed",
             .message = "worker 1 ended with code 3",
             .exit_code = 3},
        Case{.name = "SaysThatTheClusterWasStopped",
             .child = R"({"conditions":[{"type":"Failed","status":"True","reason":"FailedJobs",
                 "message":"m","lastTransitionTime":"2026-01-01T00:00:00Z"}]})",
             .pods = {R"({"phase":"Failed","containerStatuses":[{"name":"worker","state":
                          {"terminated":{"exitCode":137,"reason":"ClusterStopped"}}}]})"},
             .phase = "Failed",
             .message = "the cluster was stopped",
             .exit_code = 137},
        Case{.name = "DoesNotBlameAProcessThatWasStopped",
             .child = R"({"conditions":[{"type":"Failed","status":"True","reason":"FailedJobs",
                 "message":"m","lastTransitionTime":"2026-01-01T00:00:00Z"}]})",
             .pods = {R"({"phase":"Failed","deleting":true,"containerStatuses":[{"name":"worker",
                          "state":{"terminated":{"exitCode":143,"reason":"Error"}}}]})",
                      R"({"phase":"Failed","containerStatuses":[{"name":"worker","state":
                          {"terminated":{"exitCode":7,"reason":"Error"}}}]})"},
             .phase = "Failed",
             .message = "worker 1 ended with code 7",
             .exit_code = 7},
        Case{.name = "SaysThatTimeWasUp",
             .spec_patch = R"({"timeout":"20s"})",
             .child = R"({"conditions":[{"type":"Failed","status":"True",
                 "reason":"FailJobSetFailurePolicyAction","message":"m",
                 "lastTransitionTime":"2026-01-01T00:00:00Z"}]})",
             .phase = "Failed",
             .message = "ran longer than its time-out of 20s"},
        Case{.name = "CancelSuspendsFirst",
             .spec_patch = R"({"cancel":true})",
             .child = "{}",
             .pods = {kReady, kReady},
             .writes = {"patch JobSet ns/e {\"spec\":{\"suspend\":true}}\n"},
             .phase = "",
             .message = "stopping its processes"},
        Case{.name = "IsCancelledWhenAllHaveEnded",
             .spec_patch = R"({"cancel":true})",
             .child = "{}",
             .child_suspended = true,
             .phase = "Cancelled",
             .message = "cancelled on request"},
        Case{.name = "CancelledBeforeItBegan",
             .spec_patch = R"({"cancel":true})",
             .status = "{}",
             .phase = "Cancelled",
             .message = "cancelled on request"},
        Case{.name = "FailsWhenItsJobSetIsTakenAway",
             .phase = "Failed",
             .message = "its JobSet was deleted"},
        Case{.name = "StaysAsItEnded",
             .status = R"({"phase":"Succeeded","message":"done","endTime":"2026-01-01T00:00:00Z"})",
             .phase = "Succeeded",
             .message = "done"},
        Case{.name = "DeletesItselfAfterItsTimeToLive",
             .spec_patch = R"({"ttlSecondsAfterFinished":60})",
             .status = R"({"phase":"Succeeded","message":"done","endTime":"2026-01-01T00:00:00Z"})",
             .writes = {"delete Experiment ns/e\n"},
             .phase = "Succeeded",
             .message = "done"}),
    [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace grapnel::experiment
