#include "runtime/events.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/scripted_transport_test.h"
#include "tests/simulation/virtual_loop.h"

namespace grapnel::runtime {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

Event event(std::string reason = "Created", std::string name = "train", std::string uid = "u1") {
  return {.regarding = {&kube::kinds::kJob, {Interned("ns"), std::move(name)}, kube::Uid(uid)},
          .type = Event::Type::kNormal,
          .reason = std::move(reason),
          .action = "Reconciling",
          .message = "made 3 pods"};
}
const Time kStart{seconds(1800000000)};

int64_t count_of(const EventToSend& sent) {
  return int_or(at(sent.event, "series", "count"), 1);
}

TEST(EventSeries, TheFirstIsAWholeEvent) {
  EventSeries series({.controller = "grapnel", .instance = "pod-1"});
  const auto sent = series.record(event(), kStart);
  ASSERT_TRUE(sent);
  EXPECT_FALSE(sent->patch);
  const Json& e = sent->event;
  EXPECT_EQ(string_or(find(e, "apiVersion")), "events.k8s.io/v1");
  EXPECT_EQ(string_or(at(e, "metadata", "namespace")), "ns");
  EXPECT_THAT(std::string(string_or(at(e, "metadata", "name"))), HasSubstr("train."));
  EXPECT_EQ(string_or(find(e, "eventTime")), "2027-01-15T08:00:00.000000Z");
  EXPECT_EQ(string_or(find(e, "reportingController")), "grapnel");
  EXPECT_EQ(string_or(find(e, "reportingInstance")), "pod-1");
  EXPECT_EQ(string_or(find(e, "note")), "made 3 pods");
  EXPECT_EQ(string_or(find(e, "type")), "Normal");
  EXPECT_EQ(string_or(at(e, "regarding", "apiVersion")), "batch/v1");
  EXPECT_EQ(string_or(at(e, "regarding", "uid")), "u1");
}

TEST(EventSeries, AnotherMessageIsAnotherEvent) {
  EventSeries series({});
  const auto first = series.record(event(), kStart);
  auto other = event();
  other.message = "made 4 pods";
  const auto second = series.record(other, kStart + seconds(1));
  ASSERT_TRUE(second);
  EXPECT_FALSE(second->patch);
  EXPECT_NE(second->name, first->name);
}

TEST(EventSeries, RepetitionsBecomeACountThatIsToldRarely) {
  EventSeries series({});
  const auto first = series.record(event(), kStart);
  const auto second = series.record(event(), kStart + seconds(10));
  ASSERT_TRUE(second);
  EXPECT_TRUE(second->patch);
  EXPECT_EQ(second->name, first->name);
  EXPECT_EQ(count_of(*second), 2);
  Time now = kStart + seconds(20);
  for (int i = 0; i < 100; ++i) {
    EXPECT_FALSE(series.record(event(), now += seconds(10)));
    EXPECT_THAT(series.sweep(now), IsEmpty());
  }
  const auto ended = series.sweep(now + minutes(6));
  ASSERT_EQ(ended.size(), 1U);
  EXPECT_EQ(count_of(ended[0]), 102);
  EXPECT_EQ(series.size(), 0U);
}

TEST(EventSeries, ALongSeriesIsToldEveryHalfHour) {
  EventSeries series({});
  series.record(event(), kStart);
  std::vector<int64_t> told;
  for (int minute = 1; minute <= 65; ++minute) {
    series.record(event(), kStart + minutes(minute));
    for (const auto& sent : series.sweep(kStart + minutes(minute))) told.push_back(count_of(sent));
  }
  EXPECT_THAT(told, ElementsAre(32, 62));
}

TEST(EventSeries, WhatDiffersIsAnotherSeries) {
  EventSeries series({});
  series.record(event(), kStart);
  EXPECT_FALSE(series.record(event("Deleted"), kStart)->patch);
  EXPECT_FALSE(series.record(event("Created", "other"), kStart)->patch);
  EXPECT_FALSE(series.record(event("Created", "train", "u2"), kStart)->patch);
  EXPECT_FALSE(series.record(event(), kStart + minutes(7))->patch) << "the old one has ended";
}

TEST(EventSeries, ItsMemoryIsBounded) {
  EventSeries series({.most_series = 10});
  for (int i = 0; i < 100; ++i) {
    series.record(event("Created", fmt::format("job-{}", i)), kStart + seconds(i));
  }
  EXPECT_EQ(series.size(), 10U);
  EXPECT_TRUE(series.record(event("Created", "job-99"), kStart + seconds(100))->patch);
}

TEST(EventSeries, ALongMessageIsCutBetweenCharacters) {
  EventSeries series({});
  auto long_one = event();
  long_one.message = "x";
  for (int i = 0; i < 1000; ++i) long_one.message += "é";
  const auto sent = series.record(long_one, kStart);
  const auto note = string_or(find(sent->event, "note"));
  EXPECT_LE(note.size(), 1024U);
  EXPECT_TRUE(note.ends_with("é..."));
}

struct RecorderTest : testing::Test {
  simulation::VirtualLoop loop;
  std::shared_ptr<ScriptedTransport> server = std::make_shared<ScriptedTransport>(loop.clock);
  kube::Client client{server, nullptr, {.server = "http://test:1", .clock = &loop.clock}};
  EventRecorder recorder{loop.executor(), client, loop.clock, {.longest_queue = 3}};
};

TEST_F(RecorderTest, SendsAndTurnsAForgottenSeriesIntoANewEvent) {
  server->answer("{}");
  server->refuse(404, "NotFound");
  server->answer("{}");
  auto task = spawn(loop.executor(), recorder.run());
  recorder.record(event());
  recorder.record(event());
  loop.run_for(seconds(1));
  ASSERT_EQ(server->asked.size(), 3U);
  EXPECT_THAT(server->asked[0], HasSubstr("POST /apis/events.k8s.io/v1/namespaces/ns/events"));
  EXPECT_THAT(server->asked[1], HasSubstr(R"({"series":{"count":2,)"));
  EXPECT_THAT(server->asked[2], HasSubstr("POST"));
  task.cancel();
  loop.settle();
}

TEST_F(RecorderTest, TriesAgainAfterAFailureButNotAfterARefusal) {
  server->refuse(503, "ServiceUnavailable");
  server->answer("{}");
  server->refuse(403, "Forbidden");
  auto task = spawn(loop.executor(), recorder.run());
  recorder.record(event("A"));
  recorder.record(event("B"));
  loop.run_for(minutes(1));
  EXPECT_EQ(server->asked.size(), 3U);
  EXPECT_EQ(recorder.waiting(), 0U);
  task.cancel();
  loop.settle();
}

TEST_F(RecorderTest, RecordingNeverWaitsAndDropsWhatIsTooMuch) {
  for (int i = 0; i < 10; ++i) recorder.record(event(fmt::format("R{}", i)));
  EXPECT_EQ(recorder.waiting(), 3U);
  EXPECT_EQ(recorder.dropped(), 7U);
  for (int i = 0; i < 3; ++i) server->answer("{}");
  auto task = spawn(loop.executor(), recorder.flush(seconds(5)));
  ASSERT_TRUE(loop.run_until([&] { return task.done(); }));
  EXPECT_EQ(recorder.waiting(), 0U);
}

}  // namespace
}  // namespace grapnel::runtime
