#include "runtime/lease.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/scripted_transport_test.h"
#include "tests/simulation/virtual_loop.h"

namespace grapnel::runtime {
namespace {

using testing::HasSubstr;

const LeaseOptions kOptions{.ns = "ns", .name = "grapnel", .identity = "me"};

LeaseRecord record(std::string holder, std::string version, int64_t duration = 15) {
  return {.holder = std::move(holder), .duration_seconds = duration, .version = std::move(version)};
}

std::string words(const LeaseAction& action) {
  if (std::holds_alternative<ReadLease>(action)) return "read";
  if (std::holds_alternative<LostLease>(action)) return "lost";
  if (const auto* write = std::get_if<WriteLease>(&action)) {
    return fmt::format("write({} over {})", write->record.holder,
                       write->record.version.empty() ? "nothing" : write->record.version);
  }
  return fmt::format("wait({}ms)", std::get<WaitForLease>(action).length.count() / 1000);
}

struct Line {
  int64_t at_ms;
  LeaseInput input;
  std::string expected;
  bool leads;  // afterwards
};
struct Row {
  std::string name;
  std::vector<Line> lines;
};

LeaseWritten written(std::string version, int64_t sent_ms) {
  return {record("me", std::move(version)), Instant(milliseconds(sent_ms))};
}

const std::vector<Row> kRows = {
    {"CreatesTheLeaseAndRenewsItWithoutReading",
     {{0, LeaseWake{}, "read", false},
      {10, LeaseRead{}, "write(me over nothing)", false},
      {20, written("1", 10), "wait(2000ms)", true},
      {2020, LeaseWake{}, "write(me over 1)", true},
      {2030, written("2", 2020), "wait(2000ms)", true}}},
    {"WaitsWhileAnotherRenews",
     {{0, LeaseRead{record("you", "1")}, "wait(2000ms)", false},
      {2000, LeaseWake{}, "read", false},
      {14000, LeaseRead{record("you", "2")}, "wait(2000ms)", false},
      {28999, LeaseRead{record("you", "2")}, "wait(2000ms)", false},
      {29000, LeaseRead{record("you", "2")}, "write(me over 2)", false},
      {29010, written("3", 29000), "wait(2000ms)", true}}},
    {"TakesAReleasedLeaseAtOnce",
     {{0, LeaseRead{record("", "5", 1)}, "write(me over 5)", false},
      {5, written("6", 0), "wait(2000ms)", true}}},
    {"LosesTheRaceForAnExpiredLease",
     {{0, LeaseRead{record("you", "1", 1)}, "wait(2000ms)", false},
      {2000, LeaseRead{record("you", "1", 1)}, "write(me over 1)", false},
      {2010, LeaseWriteFailed{}, "wait(2000ms)", false},
      {4010, LeaseWake{}, "read", false},
      {4020, LeaseRead{record("they", "2")}, "wait(2000ms)", false}}},
    {"AFailedRenewalIsLookedIntoThenTriedAgain",
     {{0, LeaseRead{}, "write(me over nothing)", false},
      {5, written("1", 0), "wait(2000ms)", true},
      {2005, LeaseWake{}, "write(me over 1)", true},
      {2010, LeaseWriteFailed{}, "read", true},
      {2015, LeaseRead{record("me", "2")}, "write(me over 2)", true},
      {2020, LeaseWriteFailed{}, "wait(2000ms)", true},
      {4020, LeaseWake{}, "read", true},
      {4025, LeaseRead{record("me", "2")}, "write(me over 2)", true},
      {4030, written("3", 4025), "wait(2000ms)", true}}},
    {"StopsByItselfBeforeAnyoneElseMayStart",
     {{0, LeaseRead{}, "write(me over nothing)", false},
      {5, written("1", 0), "wait(2000ms)", true},
      {2005, LeaseWake{}, "write(me over 1)", true},
      {9999, LeaseWriteFailed{}, "read", true},
      {10000, LeaseReadFailed{}, "lost", false}}},
    {"AFrozenProcessFindsThatItsTimeIsOver",
     {{0, LeaseRead{}, "write(me over nothing)", false},
      {5, written("1", 0), "wait(2000ms)", true},
      {60000, LeaseWake{}, "lost", false}}},
    {"ASlowAnswerProvesNothing",
     {{0, LeaseRead{}, "write(me over nothing)", false},
      {11000, written("1", 0), "wait(2000ms)", false},
      {13000, LeaseWake{}, "read", false}}},
    {"AStolenLeaseIsLost",
     {{0, LeaseRead{}, "write(me over nothing)", false},
      {5, written("1", 0), "wait(2000ms)", true},
      {2005, LeaseWake{}, "write(me over 1)", true},
      {2010, LeaseWriteFailed{}, "read", true},
      {2015, LeaseRead{record("you", "2")}, "lost", false}}},
    {"ADeletedLeaseIsLost",
     {{0, LeaseRead{}, "write(me over nothing)", false},
      {5, written("1", 0), "wait(2000ms)", true},
      {2005, LeaseWake{}, "write(me over 1)", true},
      {2010, LeaseWriteFailed{}, "read", true},
      {2015, LeaseRead{}, "lost", false}}},
};

class LeaseRules : public testing::TestWithParam<Row> {};

TEST_P(LeaseRules, Hold) {
  LeaseState state{.options = kOptions};
  for (const auto& line : GetParam().lines) {
    const Instant now{milliseconds(line.at_ms)};
    EXPECT_EQ(words(step(state, line.input, {.now = now})), line.expected) << "at " << line.at_ms;
    EXPECT_EQ(state.leads_at(now), line.leads) << "at " << line.at_ms;
  }
}

INSTANTIATE_TEST_SUITE_P(All, LeaseRules, testing::ValuesIn(kRows),
                         [](const auto& row) { return row.param.name; });

TEST(Lease, CountsTransitionsAndKeepsTheTimeOfAcquisition) {
  LeaseState state{.options = kOptions};
  auto other = record("you", "1", 0);
  other.transitions = 3;
  const Time t1(seconds(1800000000));
  const auto first = step(state, LeaseRead{other}, {.wall = t1});
  const auto taken = std::get<WriteLease>(first).record;
  EXPECT_EQ(taken.transitions, 4);
  EXPECT_EQ(taken.acquired, format_micro_time(t1));
  step(state, LeaseWritten{taken, {}}, {.wall = t1});
  const auto again = step(state, LeaseWake{}, {.wall = t1 + seconds(2)});
  const auto renewed = std::get<WriteLease>(again).record;
  EXPECT_EQ(renewed.transitions, 4);
  EXPECT_EQ(renewed.acquired, format_micro_time(t1));
  EXPECT_EQ(renewed.renewed, format_micro_time(t1 + seconds(2)));
  const auto json = to_json(renewed, kOptions);
  EXPECT_EQ(lease_record_of(json), renewed) << "what is written reads back";
}

TEST(Lease, OptionsThatCannotWorkAreRefused) {
  EXPECT_TRUE(validate(kOptions));
  auto bad = kOptions;
  bad.renew = seconds(15);
  EXPECT_FALSE(validate(bad));
  bad = kOptions;
  bad.retry = seconds(9);
  EXPECT_FALSE(validate(bad));
  bad = kOptions;
  bad.identity.clear();
  EXPECT_FALSE(validate(bad));
}

struct LeaseDriver : testing::Test {
  simulation::VirtualLoop loop;
  Random random{1};
  std::shared_ptr<ScriptedTransport> server = std::make_shared<ScriptedTransport>(loop.clock);
  kube::Client client{server, nullptr, {.server = "http://test:1", .clock = &loop.clock}};
  Lease lease{client, loop.clock, random, kOptions};

  void answer_lease(std::string holder, int version) {
    auto json = to_json(record(std::move(holder), std::to_string(version)), kOptions);
    server->answer(to_text(json));
  }
};

TEST_F(LeaseDriver, GetsTheLeaseAndGivesItBack) {
  server->refuse(404, "NotFound");
  answer_lease("me", 1);
  auto task = spawn(loop.executor(), lease.run());
  ASSERT_TRUE(loop.run_until([&] { return lease.leading(); }));
  task.cancel();
  loop.settle();
  answer_lease("me", 1);
  server->refuse(409, "Conflict");
  answer_lease("me", 2);
  answer_lease("", 3);
  auto release = spawn(loop.executor(), lease.release());
  ASSERT_TRUE(loop.run_until([&] { return release.done(); }));
  EXPECT_FALSE(lease.leading());
  ASSERT_EQ(server->asked.size(), 6U) << "it was tried again after the conflict";
  EXPECT_THAT(server->asked[5], HasSubstr(R"("holderIdentity":"","leaseDurationSeconds":1)"));
}

TEST_F(LeaseDriver, AHangingServerDoesNotKeepTheLead) {
  server->refuse(404, "NotFound");
  answer_lease("me", 1);
  for (int i = 0; i < 10; ++i) server->answer({.unreachable = true});
  bool lost = false;
  lease.on_change([&](bool leading) { lost = !leading; });
  auto task = spawn(loop.executor(), lease.run());
  ASSERT_TRUE(loop.run_until([&] { return lease.leading(); }));
  const Instant since = loop.clock.instant();
  ASSERT_TRUE(loop.run_until([&] { return task.done(); }));
  EXPECT_TRUE(lost);
  EXPECT_LE(loop.clock.instant() - since, seconds(10));
  EXPECT_GE(loop.clock.instant() - since, seconds(9));
}

}  // namespace
}  // namespace grapnel::runtime
