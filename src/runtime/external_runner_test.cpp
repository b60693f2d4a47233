#include "runtime/external_runner.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <deque>

#include "tests/simulation/virtual_loop.h"

namespace grapnel::runtime {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using Phase = CallState::Phase;

// A service outside, whose answers are written down before.
struct Service {
  simulation::VirtualClock& clock;
  std::deque<Result<Json>> answers;  // the last one again and again
  Duration takes = milliseconds(10);
  std::vector<int64_t> asked_at_ms;
  std::vector<std::string> ids;

  Task<Result<Json>> answer() {
    asked_at_ms.push_back(std::chrono::duration_cast<milliseconds>(clock.elapsed()).count());
    Result<Json> out = answers.front();
    if (answers.size() > 1) answers.pop_front();
    co_await clock.sleep(takes);
    co_return out;
  }
};

struct ExternalRunnerTest : testing::Test {
  simulation::VirtualLoop loop;
  Random random{1};
  Service service{loop.clock, {Json(1)}};
  std::vector<std::string> woken;
  bool leading = true;
  ExternalRunner runner{
      loop.executor(), loop.clock, random, {.may_call = [this] { return leading; }}};
  const kube::Key key{Interned("ns"), "a"};
  const kube::Uid uid{"u"};

  ExternalRunnerTest() {
    runner.add("service", {.ask = [this](Json) { return service.answer(); },
                           .call =
                               [this](Json, std::string id) {
                                 service.ids.push_back(id);
                                 return service.answer();
                               },
                           .timeout = seconds(5)});
    runner.on_change([this](size_t, const kube::Key& k) { woken.push_back(k.text()); });
  }
  ~ExternalRunnerTest() override {
    auto stopping = spawn(loop.executor(), runner.stop());
    EXPECT_TRUE(loop.run_until([&] { return stopping.done(); }));
  }

  Question question(Json what = "job", Duration every = seconds(3)) {
    return {.name = "status", .executor = "service", .what = std::move(what), .every = every};
  }
  void ask(std::vector<Question> questions) { runner.ask(0, key, uid, std::move(questions)); }
  void make(std::vector<Call> calls) { runner.make(0, key, uid, std::move(calls)); }
  Call call(std::string id = "submit-1") {
    return {.id = std::move(id), .executor = "service", .what = "job"};
  }
  const External& known() { return runner.known(0, key, uid); }
};

TEST_F(ExternalRunnerTest, AsksForAsLongAsPlansAskAndWakesOnlyForNews) {
  service.answers = {Json("PENDING"), Json("PENDING"), Json("RUNNING")};
  ask({question()});
  EXPECT_EQ(known().fact("status"), nullptr) << "no plan waits for an answer";
  loop.run_for(seconds(1));
  ASSERT_NE(known().fact("status"), nullptr);
  EXPECT_EQ(known().fact("status")->answer, Json("PENDING"));
  EXPECT_THAT(woken, ElementsAre("ns/a"));
  ask({question()});  // the next plan asks the same
  loop.run_for(seconds(9));
  EXPECT_EQ(known().fact("status")->answer, Json("RUNNING"));
  EXPECT_EQ(woken.size(), 2u) << "a repeated answer is no news";
  EXPECT_THAT(service.asked_at_ms,
              ElementsAre(0, testing::Ge(3000), testing::Ge(6000), testing::_));
  ask({});
  const size_t asked = service.asked_at_ms.size();
  loop.run_for(seconds(60));
  EXPECT_EQ(service.asked_at_ms.size(), asked);
  EXPECT_EQ(known().fact("status"), nullptr);
}

TEST_F(ExternalRunnerTest, AnOldAnswerStandsBesideTheTrouble) {
  service.answers = {Json("RUNNING"), fail(Reason::kTransport, "refused"),
                     fail(Reason::kTransport, "reset"), Json("RUNNING")};
  ask({question()});
  loop.run_until([&] { return woken.size() == 2; });
  const Fact* fact = known().fact("status");
  EXPECT_EQ(fact->answer, Json("RUNNING"));
  EXPECT_EQ(fact->trouble->message, "refused");
  const Time failing_since = fact->failing_since;
  loop.run_until([&] { return known().fact("status")->trouble->message == "reset"; });
  EXPECT_EQ(woken.size(), 2u) << "another failure is no news";
  EXPECT_EQ(known().fact("status")->failing_since, failing_since);
  loop.run_until([&] { return woken.size() == 3; });
  EXPECT_FALSE(known().fact("status")->trouble);
}

TEST_F(ExternalRunnerTest, ASilentServiceIsAskedLessOftenAndHoldsUpNobody) {
  service.takes = hours(1);
  ask({question("job", seconds(1))});
  loop.run_for(minutes(2));
  EXPECT_THAT(known().fact("status")->trouble->message, HasSubstr("no answer within 5 s"));
  EXPECT_LE(service.asked_at_ms.size(), 11u);  // 5 s of waiting, then up to 10 s of rest
  EXPECT_GE(service.asked_at_ms.size(), 7u);
}

TEST_F(ExternalRunnerTest, AnotherQuestionOfTheSameNameForgetsTheAnswer) {
  ask({question("job 1")});
  loop.run_for(seconds(1));
  ASSERT_NE(known().fact("status"), nullptr);
  ask({question("job 2")});
  EXPECT_EQ(known().fact("status"), nullptr);
  loop.run_for(seconds(1));
  EXPECT_NE(known().fact("status"), nullptr);
}

TEST_F(ExternalRunnerTest, ALaterObjectOfTheSameNameKnowsNothing) {
  ask({question()});
  make({call()});
  loop.run_for(seconds(1));
  EXPECT_TRUE(known().is_done("submit-1"));
  const kube::Uid later("v");
  EXPECT_EQ(runner.known(0, key, later).fact("status"), nullptr);
  runner.make(0, key, later, {call()});
  EXPECT_FALSE(runner.known(0, key, later).is_done("submit-1"));
  EXPECT_EQ(known().call("submit-1"), nullptr);
  runner.forget(0, key);
  EXPECT_EQ(runner.objects(), 0u);
}

TEST_F(ExternalRunnerTest, ACallIsMadeOnceHoweverOftenItIsNamed) {
  service.answers = {Json("raysubmit_1")};
  make({call()});
  EXPECT_EQ(known().call("submit-1")->phase, Phase::kUnderWay);
  make({call()});
  loop.run_for(seconds(1));
  EXPECT_TRUE(known().is_done("submit-1"));
  EXPECT_EQ(known().call("submit-1")->answer, Json("raysubmit_1"));
  make({call()});
  loop.run_for(minutes(5));
  EXPECT_THAT(service.ids, ElementsAre("submit-1"));
  EXPECT_THAT(woken, ElementsAre("ns/a"));
  make({call("stop-1")});
  EXPECT_EQ(known().call("submit-1"), nullptr) << "what no plan names is forgotten";
}

TEST_F(ExternalRunnerTest, AFailedCallIsTriedAgainWithGrowingPauses) {
  service.takes = {};
  service.answers = {fail(Reason::kTransport, "refused"), fail(Reason::kTransport, "refused"),
                     fail(Reason::kTransport, "refused"), Json("ok")};
  make({call()});
  loop.run_until([&] { return !woken.empty(); });
  EXPECT_EQ(known().call("submit-1")->phase, Phase::kFailed);
  EXPECT_EQ(known().call("submit-1")->error->message, "refused");
  loop.run_until([&] { return known().is_done("submit-1"); });
  EXPECT_EQ(known().call("submit-1")->tries, 4);
  EXPECT_THAT(service.asked_at_ms,
              ElementsAre(0, testing::Ge(1000), testing::Ge(3000), testing::Ge(7000)));
}

TEST_F(ExternalRunnerTest, ACallThatIsNoLongerNamedIsNotRepeated) {
  service.answers = {fail(Reason::kTransport, "refused")};
  make({call()});
  loop.run_until([&] { return !woken.empty(); });
  make({});
  loop.run_for(minutes(5));
  EXPECT_EQ(service.ids.size(), 1u);
  EXPECT_EQ(known().call("submit-1"), nullptr);
}

TEST_F(ExternalRunnerTest, ALateAnswerLeavesOpenWhetherItWasDone) {
  service.takes = minutes(1);
  make({call()});
  loop.run_until([&] { return !woken.empty(); });
  EXPECT_TRUE(known().call("submit-1")->error->ambiguous);
}

TEST_F(ExternalRunnerTest, WhoDoesNotLeadCallsNobody) {
  leading = false;
  make({call()});
  loop.run_for(minutes(1));
  EXPECT_TRUE(service.ids.empty());
}

TEST_F(ExternalRunnerTest, AnUnknownExecutorAndOneThatThrowsAreTroubleOfThatObjectAlone) {
  runner.add("broken", {.ask = [](Json) -> Task<Result<Json>> {
               throw std::runtime_error("a defect");
               co_return Json();
             }});
  Question nobody = question();
  nobody.executor = "nobody";
  nobody.name = "a";
  Question broken = question();
  broken.executor = "broken";
  ask({nobody, broken});
  loop.run_for(seconds(1));
  EXPECT_THAT(known().fact("a")->trouble->message, HasSubstr("no executor is called 'nobody'"));
  EXPECT_EQ(known().fact("status")->trouble->message, "a defect");
}

}  // namespace
}  // namespace grapnel::runtime
