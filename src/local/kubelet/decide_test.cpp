
#include <gmock/gmock.h>

#include "base/strings.h"
#include "local/kubelet/pod_status.h"
#include "local/kubelet/pod_test.h"

namespace grapnel::local::kubelet {
namespace {

using testing::ElementsAre;

const Time kNow = *parse_time("2026-01-01T12:00:00Z");

ContainerStatus running(uint64_t attempt = 0) {
  return {.name = "main",
          .attempt = attempt,
          .state = ContainerState::kRunning,
          .started_at = kNow - seconds(60)};
}

ContainerStatus ended(int code, uint64_t attempt = 0, Duration ago = seconds(1)) {
  return {.name = "main",
          .attempt = attempt,
          .state = ContainerState::kExited,
          .started_at = kNow - seconds(60),
          .finished_at = kNow - ago,
          .exit_code = code};
}

ContainerStatus in_state(ContainerState state) {
  return {.name = "main",
          .state = state,
          .error = state == ContainerState::kFailedToStart ? "no such file" : ""};
}

ContainerStatus lost_with(std::string why) {
  auto status = in_state(ContainerState::kLost);
  status.error = std::move(why);
  return status;
}

ContainerFacts is(ContainerStatus status, unsigned restarts = 0) {
  ContainerFacts facts;
  facts.now = std::move(status);
  facts.restarts_in_a_row = restarts;
  return facts;
}

ContainerFacts stopping(ContainerFacts facts) {
  facts.told_to_stop = true;
  return facts;
}

ContainerFacts not_started(ContainerFacts facts) {
  facts.started = false;
  return facts;
}

using Facts = std::map<std::string, ContainerFacts, std::less<>>;

struct Case {
  std::string name;
  std::string spec;
  Facts facts;
  std::vector<std::string> then;  // actions
  std::string phase;
  std::string state = "";  // of the last container: "running", "waiting X", "terminated X 1"
  std::string status = "{}";
  std::string metadata = "{}";
  bool has_sandbox = true;
  bool is_lost = false;
  int64_t look_again = 0;  // seconds from now; 0: no
};

std::string state_text(const Json& status) {
  const Json* containers = find(status, "containerStatuses");
  if (containers == nullptr || elements(containers).empty()) return "none";
  const Json* state = find(elements(containers).back(), "state");
  if (const Json* waiting = find(*state, "waiting")) {
    return fmt::format("waiting {}", string_or(find(*waiting, "reason")));
  }
  if (const Json* over = find(*state, "terminated")) {
    return fmt::format("terminated {} {}", string_or(find(*over, "reason")),
                       int_or(find(*over, "exitCode"), -1));
  }
  return find(*state, "running") != nullptr ? "running" : "unknown";
}

constexpr const char* kAlways = R"({"containers":[{"name":"main"}]})";
constexpr const char* kOnFailure =
    R"({"restartPolicy":"OnFailure","containers":[{"name":"main"}]})";
constexpr const char* kNever = R"({"restartPolicy":"Never","containers":[{"name":"main"}]})";
constexpr const char* kInit =
    R"({"restartPolicy":"Never","initContainers":[{"name":"a"},{"name":"b"}],
        "containers":[{"name":"main"}]})";
constexpr const char* kSidecar =
    R"({"restartPolicy":"Never","initContainers":[{"name":"side","restartPolicy":"Always"}],
        "containers":[{"name":"main"}]})";
constexpr const char* kTwo =
    R"({"restartPolicy":"Never","containers":[{"name":"other"},{"name":"main"}]})";
constexpr const char* kDeleted =
    R"({"deletionTimestamp":"2026-01-01T12:00:20Z","deletionGracePeriodSeconds":30})";

std::vector<Case> cases() {
  return {
      {"a new pod gets its sandbox",
       kAlways,
       {},
       {"start pod"},
       "Pending",
       "waiting ContainerCreating",
       "{}",
       "{}",
       false},
      {"then its container",
       kAlways,
       {},
       {"start main #0"},
       "Pending",
       "waiting ContainerCreating"},
      {"a running pod is left alone", kAlways, {{"main", is(running())}}, {}, "Running", "running"},
      {"both containers start",
       kTwo,
       {},
       {"start other #0", "start main #0"},
       "Pending",
       "waiting ContainerCreating"},
      {"pending until the last has started",
       kTwo,
       {{"other", is(running())}},
       {"start main #0"},
       "Pending",
       "waiting ContainerCreating"},

      {"the first restart comes at once",
       kAlways,
       {{"main", is(ended(1))}},
       {"start main #1"},
       "Running",
       "terminated Error 1"},
      {"the second waits",
       kAlways,
       {{"main", is(ended(1, 1), 1)}},
       {},
       "Running",
       "waiting CrashLoopBackOff",
       "{}",
       "{}",
       true,
       false,
       9},
      {"and comes in its time",
       kAlways,
       {{"main", is(ended(1, 1, seconds(10)), 1)}},
       {"start main #2"},
       "Running",
       "waiting CrashLoopBackOff"},
      {"the back-off doubles",
       kAlways,
       {{"main", is(ended(1, 3, seconds(1)), 3)}},
       {},
       "Running",
       "waiting CrashLoopBackOff",
       "{}",
       "{}",
       true,
       false,
       39},
      {"up to five minutes",
       kAlways,
       {{"main", is(ended(1, 9, seconds(1)), 9)}},
       {},
       "Running",
       "waiting CrashLoopBackOff",
       "{}",
       "{}",
       true,
       false,
       299},
      {"Always restarts also after success",
       kAlways,
       {{"main", is(ended(0))}},
       {"start main #1"},
       "Running",
       "terminated Completed 0"},
      {"OnFailure does not",
       kOnFailure,
       {{"main", is(ended(0))}},
       {},
       "Succeeded",
       "terminated Completed 0"},
      {"OnFailure restarts what failed",
       kOnFailure,
       {{"main", is(ended(3))}},
       {"start main #1"},
       "Running",
       "terminated Error 3"},
      {"Never leaves it: succeeded",
       kNever,
       {{"main", is(ended(0))}},
       {},
       "Succeeded",
       "terminated Completed 0"},
      {"Never leaves it: failed",
       kNever,
       {{"main", is(ended(7))}},
       {},
       "Failed",
       "terminated Error 7"},
      {"what does not start has failed",
       kNever,
       {{"main", is(in_state(ContainerState::kFailedToStart))}},
       {},
       "Failed",
       "terminated StartError 128"},
      {"one of two has ended: still running",
       kTwo,
       {{"other", is(ended(0))}, {"main", is(running())}},
       {},
       "Running",
       "running"},
      {"one of two has failed: failed at the end",
       kTwo,
       {{"other", is(ended(1))}, {"main", is(ended(0))}},
       {},
       "Failed",
       "terminated Completed 0"},

      {"init containers come first",
       kInit,
       {},
       {"start a #0"},
       "Pending",
       "waiting PodInitializing"},
      {"one after the other",
       kInit,
       {{"a", is(running())}},
       {},
       "Pending",
       "waiting PodInitializing"},
      {"the next follows success",
       kInit,
       {{"a", is(ended(0))}},
       {"start b #0"},
       "Pending",
       "waiting PodInitializing"},
      {"main after all of them",
       kInit,
       {{"a", is(ended(0))}, {"b", is(ended(0))}},
       {"start main #0"},
       "Pending",
       "waiting ContainerCreating"},
      {"a failed init container fails the pod",
       kInit,
       {{"a", is(ended(1))}},
       {},
       "Failed",
       "waiting PodInitializing"},

      {"a sidecar starts before",
       kSidecar,
       {},
       {"start side #0"},
       "Pending",
       "waiting PodInitializing"},
      {"what follows waits for its startup",
       kSidecar,
       {{"side", not_started(is(running()))}},
       {},
       "Pending",
       "waiting PodInitializing"},
      {"and runs beside it",
       kSidecar,
       {{"side", is(running())}},
       {"start main #0"},
       "Pending",
       "waiting ContainerCreating"},
      {"a sidecar is restarted whatever the policy",
       kSidecar,
       {{"side", is(ended(0))}, {"main", is(running())}},
       {"start side #1"},
       "Running",
       "running"},
      {"it ends when main has",
       kSidecar,
       {{"side", is(running())}, {"main", is(ended(0))}},
       {"stop side in 30s"},
       "Running",
       "terminated Completed 0"},
      {"then the pod is over",
       kSidecar,
       {{"side", is(ended(143))}, {"main", is(ended(0))}},
       {},
       "Succeeded",
       "terminated Completed 0"},

      {"deleted: told to stop in what is left of its grace, rounded up",
       kAlways,
       {{"main", is(running())}},
       {"stop main in 21s"},
       "Running",
       "running",
       "{}",
       kDeleted},
      {"once",
       kAlways,
       {{"main", stopping(is(running()))}},
       {},
       "Running",
       "running",
       "{}",
       kDeleted},
      {"deleted: not restarted; its end is reported first",
       kAlways,
       {{"main", is(ended(143))}},
       {},
       "Failed",
       "terminated Error 143",
       "{}",
       kDeleted},
      {"then all of it goes",
       kAlways,
       {{"main", is(ended(143))}},
       {"remove pod", "delete object"},
       "Failed",
       "none",
       R"({"phase":"Failed"})",
       kDeleted},
      {"deleted before it started",
       kAlways,
       {},
       {},
       "Failed",
       "terminated ContainerStatusUnknown 137",
       "{}",
       kDeleted,
       false},
      {"held by a finalizer only: nothing to do",
       kAlways,
       {},
       {},
       "Failed",
       "none",
       R"({"phase":"Failed"})",
       R"({"deletionTimestamp":"2026-01-01T12:00:20Z","deletionGracePeriodSeconds":0})",
       false},
      {"ended and reported: the sandbox goes, the object stays",
       kNever,
       {{"main", is(ended(0))}},
       {"remove pod"},
       "Succeeded",
       "none",
       R"({"phase":"Succeeded"})"},
      {"a finished pod never starts again",
       kAlways,
       {},
       {},
       "Succeeded",
       "none",
       R"({"phase":"Succeeded"})",
       "{}",
       false},
      {"someone else ended it: what runs is stopped",
       kAlways,
       {{"main", is(running())}},
       {"stop main in 30s"},
       "Failed",
       "none",
       R"({"phase":"Failed"})"},

      {"past its deadline it is stopped",
       R"({"activeDeadlineSeconds":60,"containers":[{"name":"main"}]})",
       {{"main", is(running())}},
       {"stop main in 30s"},
       "Running",
       "running",
       R"({"startTime":"2026-01-01T11:59:00Z"})"},
      {"and has failed, whatever the exit code",
       R"({"activeDeadlineSeconds":60,"containers":[{"name":"main"}]})",
       {{"main", is(ended(0))}},
       {},
       "Failed",
       "terminated Completed 0",
       R"({"startTime":"2026-01-01T11:59:00Z"})"},
      {"before it, we look again then",
       R"({"activeDeadlineSeconds":90,"containers":[{"name":"main"}]})",
       {{"main", is(running())}},
       {},
       "Running",
       "running",
       R"({"startTime":"2026-01-01T11:59:00Z"})",
       "{}",
       true,
       false,
       30},

      {"lost with its sandbox: failed",
       kNever,
       {{"main", is(in_state(ContainerState::kLost))}},
       {},
       "Failed",
       "terminated ContainerStatusUnknown 137",
       "{}",
       "{}",
       true,
       true},
      {"ended with the cluster: failed, and it is said why",
       kNever,
       {{"main", is(lost_with("the cluster was stopped"))}},
       {},
       "Failed",
       "terminated ClusterStopped 137",
       "{}",
       "{}",
       true,
       true},
      {"lost with its sandbox: made anew",
       kAlways,
       {{"main", is(in_state(ContainerState::kLost))}},
       {"remove pod", "start pod"},
       "Running",
       "terminated ContainerStatusUnknown 137",
       "{}",
       "{}",
       true,
       true},
  };
}

class Decisions : public testing::TestWithParam<Case> {};

TEST_P(Decisions, AreThese) {
  const Case& c = GetParam();
  const Pod pod = pod_of(c.spec, c.status, c.metadata);
  Observed observed{
      .pod = &pod, .has_sandbox = c.has_sandbox, .is_lost = c.is_lost, .containers = c.facts};
  for (auto& [name, facts] : observed.containers) {
    if (facts.now) facts.now->name = name;
  }
  const Decision decision = decide(observed, kNow);
  std::vector<std::string> actions;
  for (const Action& action : decision.actions) actions.push_back(describe(action));
  EXPECT_EQ(actions, c.then);
  EXPECT_EQ(string_or(find(decision.status, "phase")), c.phase);
  EXPECT_EQ(state_text(decision.status), c.state) << to_text(decision.status);
  const auto wait =
      decision.look_again ? duration_cast<seconds>(*decision.look_again - kNow).count() : 0;
  EXPECT_EQ(wait, c.look_again);
}

std::string name_of(const testing::TestParamInfo<Case>& info) {
  std::string out;
  for (const char c : info.param.name) out += std::isalnum(static_cast<unsigned char>(c)) ? c : '_';
  return fmt::format("{:02}_{}", info.index, out);
}

INSTANTIATE_TEST_SUITE_P(Table, Decisions, testing::ValuesIn(cases()), name_of);

const Json& condition(const Json& status, std::string_view type) {
  static const Json none;
  for (const Json& condition : elements(find(status, "conditions"))) {
    if (string_or(find(condition, "type")) == type) return condition;
  }
  return none;
}

TEST(Conditions, KeepTheTimeOfTheirTransition) {
  const Pod pod = pod_of(kAlways, R"({"conditions":[
      {"type":"Ready","status":"False","lastTransitionTime":"2026-01-01T10:00:00Z"},
      {"type":"ContainersReady","status":"True","lastTransitionTime":"2026-01-01T10:00:00Z"},
      {"type":"DisruptionTarget","status":"True","reason":"EvictionByEvictionAPI"}]})");
  Observed observed{.pod = &pod, .has_sandbox = true, .containers = {{"main", is(running())}}};
  const Json status = decide(observed, kNow).status;
  EXPECT_EQ(string_or(find(condition(status, "Ready"), "status")), "True");
  EXPECT_EQ(string_or(find(condition(status, "Ready"), "lastTransitionTime")),
            "2026-01-01T12:00:00Z");
  EXPECT_EQ(string_or(find(condition(status, "ContainersReady"), "lastTransitionTime")),
            "2026-01-01T10:00:00Z");
  EXPECT_EQ(string_or(find(condition(status, "DisruptionTarget"), "reason")),
            "EvictionByEvictionAPI");
  EXPECT_EQ(string_or(find(condition(status, "PodScheduled"), "status")), "True");
  EXPECT_EQ(string_or(find(elements(find(status, "conditions")).back(), "type")), "PodScheduled");
}

TEST(Conditions, SayWhoIsNotReady) {
  const Pod pod = pod_of(kTwo);
  Observed observed{.pod = &pod, .has_sandbox = true, .containers = {{"other", is(running())}}};
  const Json status = decide(observed, kNow).status;
  EXPECT_EQ(string_or(find(condition(status, "Ready"), "message")),
            "containers with unready status: [main]");
  EXPECT_EQ(string_or(find(condition(status, "Initialized"), "status")), "True");
}

TEST(Conditions, ObeyReadinessGates) {
  const Pod pod =
      pod_of(R"({"readinessGates":[{"conditionType":"x/y"}],"containers":[{"name":"main"}]})");
  Observed observed{.pod = &pod, .has_sandbox = true, .containers = {{"main", is(running())}}};
  const Json status = decide(observed, kNow).status;
  EXPECT_EQ(string_or(find(condition(status, "ContainersReady"), "status")), "True");
  EXPECT_EQ(string_or(find(condition(status, "Ready"), "reason")), "ReadinessGatesNotReady");
}

TEST(Status, TellsOfTheAttemptBefore) {
  const Pod pod = pod_of(kAlways);
  ContainerFacts facts = is(running(2));
  facts.now->name = "main";
  facts.before = ended(137, 1);
  facts.before->out_of_memory = true;
  Observed observed{.pod = &pod, .has_sandbox = true, .address = "10.244.0.5"};
  observed.containers["main"] = facts;
  const Json status = decide(observed, kNow).status;
  const Json& container = elements(find(status, "containerStatuses")).front();
  EXPECT_EQ(int_or(find(container, "restartCount")), 2);
  EXPECT_EQ(string_or(at(container, "lastState", "terminated", "reason")), "OOMKilled");
  EXPECT_EQ(int_or(at(container, "lastState", "terminated", "exitCode")), 137);
  EXPECT_TRUE(bool_or(find(container, "ready")));
  EXPECT_TRUE(bool_or(find(container, "started")));
  EXPECT_EQ(string_or(find(status, "podIP")), "10.244.0.5");
}

TEST(Status, SaysWhyItWaits) {
  const Pod pod = pod_of(kAlways);
  Observed observed{.pod = &pod, .has_sandbox = true};
  observed.containers["main"].trouble = Trouble{.reason = "CreateContainerConfigError",
                                                .message = "configmap \"c\" not found",
                                                .retry_at = kNow + seconds(4)};
  const Decision decision = decide(observed, kNow);
  EXPECT_TRUE(decision.actions.empty());
  EXPECT_EQ(decision.look_again, kNow + seconds(4));
  const Json& container = elements(find(decision.status, "containerStatuses")).front();
  EXPECT_EQ(string_or(at(container, "state", "waiting", "message")), "configmap \"c\" not found");
}

// What decide() reports, an heir can go on from.
TEST(FactsOfStatus, AreWhatWasReported) {
  const Pod pod = pod_of(kTwo);
  Observed observed{.pod = &pod, .has_sandbox = true};
  observed.containers["other"] = is(running(1));
  observed.containers["other"].now->name = "other";
  observed.containers["main"] = is(ended(3, 2));
  const Json status = decide(observed, kNow).status;
  const auto facts = facts_of_status(pod_of(kTwo, to_text(status)));
  ASSERT_TRUE(facts.contains("other") && facts.contains("main"));
  EXPECT_EQ(facts.at("other").now->state, ContainerState::kLost);
  EXPECT_EQ(facts.at("other").now->attempt, 1U);
  EXPECT_EQ(facts.at("main").now->state, ContainerState::kExited);
  EXPECT_EQ(facts.at("main").now->exit_code, 3);
  EXPECT_EQ(facts.at("main").now->attempt, 2U);
}

TEST(FactsOfStatus, KnowWhatWaitsForItsNextStart) {
  const Pod pod = pod_of(kAlways);
  Observed observed{.pod = &pod, .has_sandbox = true};
  observed.containers["main"] = is(ended(3, 2), 2);
  const Json status = decide(observed, kNow).status;
  ASSERT_EQ(state_text(status), "waiting CrashLoopBackOff");
  const auto facts = facts_of_status(pod_of(kAlways, to_text(status)));
  EXPECT_EQ(facts.at("main").now->exit_code, 3);
  EXPECT_EQ(next_attempt(facts.at("main")), 3U);
}

TEST(QosClass, IsKubernetesOwn) {
  const auto qos = [](std::string_view resources) {
    return std::string(qos_class(
        pod_of(fmt::format(R"({{"containers":[{{"name":"main","resources":{}}}]}})", resources))));
  };
  EXPECT_EQ(qos("{}"), "BestEffort");
  EXPECT_EQ(qos(R"({"requests":{"cpu":"1"}})"), "Burstable");
  EXPECT_EQ(qos(R"({"limits":{"cpu":"1","memory":"1Gi"}})"), "Guaranteed");
  EXPECT_EQ(qos(R"({"limits":{"cpu":"1","memory":"1Gi"},"requests":{"cpu":"500m"}})"), "Burstable");
}

}  // namespace
}  // namespace grapnel::local::kubelet
