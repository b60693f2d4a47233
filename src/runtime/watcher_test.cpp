#include "runtime/watcher.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <vector>

namespace grapnel::runtime {
namespace {

// A step in words: "begin apply finish synced advance list(v=7 limit=500 token=x)".
std::string words(const WatcherStep& step) {
  std::string text;
  if (step.begin_replace) text += "begin ";
  if (step.apply) text += "apply ";
  if (step.finish_replace) text += "finish ";
  if (step.synced) text += "synced ";
  if (step.advance) text += "advance ";
  if (const auto* list = std::get_if<StartList>(&step.next)) {
    text += "list(v=" + list->version;
    if (list->limit != 0) text += fmt::format(" limit={}", list->limit);
    if (!list->continue_token.empty()) text += " token=" + list->continue_token;
    text += ")";
  } else if (const auto* watch = std::get_if<OpenWatch>(&step.next)) {
    text += fmt::format("{}(v={})", watch->initial_events ? "stream" : "watch", watch->version);
  } else if (const auto* wait = std::get_if<BackOff>(&step.next)) {
    text += fmt::format("wait({}ms)", wait->length.count() / 1000);
  } else {
    text += "on";
  }
  return text;
}

Error api_error(int code, Reason reason = Reason::kUnknown) {
  return {.reason = reason, .message = "refused", .code = code};
}
Error too_large() {
  Error error = api_error(504, Reason::kTimeout);
  error.causes.push_back({.reason = "ResourceVersionTooLarge"});
  return error;
}
Error busy(Duration retry_after) {
  Error error = api_error(429, Reason::kTooManyRequests);
  error.retry_after = retry_after;
  return error;
}

const Error kNoSuchKind = api_error(404, Reason::kNotFound);
const Error kGone410 = api_error(410, Reason::kExpired);
const Error kReset{.reason = Reason::kTransport, .message = "reset"};
constexpr auto kAdded = ObjectEvent::Type::kAdded;
constexpr auto kModified = ObjectEvent::Type::kModified;
constexpr auto kDeleted = ObjectEvent::Type::kDeleted;

struct Line {
  int64_t at_ms;  // since the start
  WatcherInput input;
  std::string expected;
};

struct Row {
  std::string name;
  WatcherOptions options;
  std::string first;
  std::vector<Line> lines;
  std::string version;  // at the end
};

const WatcherOptions kLists{.watch_list = false};
const WatcherOptions kStale{.watch_list = false, .stale_first_list = true};
const WatcherOptions kStreams{.watch_list = true};

// Jitter is left out (random = 0) so that waits are exact.
const std::vector<Row> kRows = {
    {"ListsTheNewestInPagesThenWatchesFromThere",
     kLists,
     "begin list(v= limit=500)",
     {{0, ListPageDone{"7", "t1"}, "list(v= limit=500 token=t1)"},
      {5, ListPageDone{"7", ""}, "finish synced advance watch(v=7)"},
      {6, WatchOpened{}, "on"},
      {9, ObjectEvent{kModified, "8"}, "apply advance on"},
      {9, ObjectEvent{kDeleted, "9"}, "apply advance on"}},
     "9"},
    {"AStaleFirstListIsNotPaged",
     kStale,
     "begin list(v=0)",
     {{0, ListPageDone{"7", ""}, "finish synced advance watch(v=7)"}},
     "7"},
    {"BookmarksAdvanceTheVersion",
     kLists,
     "begin list(v= limit=500)",
     {{0, ListPageDone{"7", ""}, "finish synced advance watch(v=7)"},
      {1, WatchOpened{}, "on"},
      {2, Bookmark{"30", false}, "advance on"},
      {5000, StreamEnded{}, "watch(v=30)"}},
     "30"},
    {"ADoubtedConnectionIsOpenedAgain",
     kLists,
     "begin list(v= limit=500)",
     {{0, ListPageDone{"7", ""}, "finish synced advance watch(v=7)"},
      {1, WatchOpened{}, "on"},
      {2, Doubted{}, "watch(v=7)"}},
     "7"},
    {"DoubtedContentsAreListedAgainFromTheNewest",
     kLists,
     "begin list(v= limit=500)",
     {{0, ListPageDone{"7", ""}, "finish synced advance watch(v=7)"},
      {1, WatchOpened{}, "on"},
      {2, Doubted{.contents = true}, "begin list(v= limit=500)"},
      {3, ListFailed{kReset}, "wait(800ms)"},
      {803, TimerDone{}, "begin list(v= limit=500)"},
      {900, ListPageDone{"3", ""}, "finish advance watch(v=3)"}},
     "3"},
    {"AnExpiredEventRelistsFromTheLastVersionWithoutPages",
     kLists,
     "begin list(v= limit=500)",
     {{0, ListPageDone{"7", ""}, "finish synced advance watch(v=7)"},
      {1, WatchOpened{}, "on"},
      {2, ErrorEvent{kGone410}, "begin list(v=7)"},
      {3, ListPageDone{"50", ""}, "finish advance watch(v=50)"}},
     "50"},
    {"AnExpiredWatchAnsweredAsHttp410IsTheSame",
     kLists,
     "begin list(v= limit=500)",
     {{0, ListPageDone{"7", ""}, "finish synced advance watch(v=7)"},
      {1, WatchRefused{kGone410}, "begin list(v=7)"}},
     "7"},
    {"ASecondExpiryInARowWaits",
     kLists,
     "begin list(v= limit=500)",
     {{0, ListPageDone{"7", ""}, "finish synced advance watch(v=7)"},
      {1, WatchRefused{kGone410}, "begin list(v=7)"},
      {2, ListPageDone{"8", ""}, "finish advance watch(v=8)"},
      {3, WatchRefused{kGone410}, "wait(1600ms)"},
      {1603, TimerDone{}, "begin list(v=8)"}},
     "8"},
    {"AnExpiredRelistAsksForTheNewest",
     kLists,
     "begin list(v= limit=500)",
     {{0, ListPageDone{"7", ""}, "finish synced advance watch(v=7)"},
      {1, WatchRefused{kGone410}, "begin list(v=7)"},
      {2, ListFailed{kGone410}, "begin list(v=)"},
      {3, ListPageDone{"3", ""}, "finish advance watch(v=3)"}},
     "3"},
    {"ATooLargeVersionAsksForTheNewestAfterAWait",
     kLists,
     "begin list(v= limit=500)",
     {{0, ListPageDone{"7", ""}, "finish synced advance watch(v=7)"},
      {1, WatchRefused{kGone410}, "begin list(v=7)"},
      {2, ListFailed{too_large()}, "wait(1600ms)"},
      {1602, TimerDone{}, "begin list(v= limit=500)"}},
     "7"},
    {"ATooLargeVersionOnTheWatchRelistsTheNewest",
     kLists,
     "begin list(v= limit=500)",
     {{0, ListPageDone{"7", ""}, "finish synced advance watch(v=7)"},
      {1, WatchRefused{too_large()}, "wait(800ms)"},
      {801, TimerDone{}, "begin list(v= limit=500)"}},
     "7"},
    {"AnExpiredPageStartsAgainInOnePiece",
     kLists,
     "begin list(v= limit=500)",
     {{0, ListPageDone{"7", "t1"}, "list(v= limit=500 token=t1)"},
      {1, ListFailed{kGone410}, "begin list(v=)"},
      {2, ListPageDone{"9", ""}, "finish synced advance watch(v=9)"}},
     "9"},
    {"AListThatExpiresForEverDoesNotLoopHot",
     kLists,
     "begin list(v= limit=500)",
     {{0, ListFailed{kGone410}, "begin list(v=)"},
      {1, ListFailed{kGone410}, "wait(800ms)"},
      {801, TimerDone{}, "begin list(v=)"},
      {802, ListFailed{kGone410}, "wait(1600ms)"}},
     ""},
    {"AForbiddenListIsTriedAgainEverSlower",
     kLists,
     "begin list(v= limit=500)",
     {{0, ListFailed{api_error(403, Reason::kForbidden)}, "wait(800ms)"},
      {800, TimerDone{}, "begin list(v= limit=500)"},
      {801, ListFailed{api_error(403, Reason::kForbidden)}, "wait(1600ms)"},
      {2401, TimerDone{}, "begin list(v= limit=500)"},
      {2402, ListFailed{kReset}, "wait(3200ms)"},
      {5602, TimerDone{}, "begin list(v= limit=500)"},
      {5603, ListFailed{kReset}, "wait(6400ms)"},
      {12003, TimerDone{}, "begin list(v= limit=500)"},
      {12004, ListFailed{kReset}, "wait(12800ms)"},
      {24804, TimerDone{}, "begin list(v= limit=500)"},
      {24805, ListFailed{kReset}, "wait(25600ms)"},
      {50405, TimerDone{}, "begin list(v= limit=500)"},
      {50406, ListFailed{kReset}, "wait(30000ms)"},
      {80406, TimerDone{}, "begin list(v= limit=500)"},
      {80407, ListFailed{kReset}, "wait(30000ms)"}},
     ""},
    {"AKindThatIsNotDefinedIsAskedForUpToAMinuteLater",
     kStreams,
     "begin stream(v=)",
     {{0, WatchRefused{kReset}, "wait(800ms)"},
      {800, TimerDone{}, "begin stream(v=)"},
      {801, WatchRefused{kNoSuchKind}, "wait(5000ms)"},
      {5801, TimerDone{}, "begin stream(v=)"},
      {5802, WatchRefused{kNoSuchKind}, "wait(10000ms)"},
      {15802, TimerDone{}, "begin stream(v=)"},
      {15803, WatchRefused{kNoSuchKind}, "wait(20000ms)"},
      {35803, TimerDone{}, "begin stream(v=)"},
      {35804, WatchRefused{kNoSuchKind}, "wait(40000ms)"},
      {75804, TimerDone{}, "begin stream(v=)"},
      {75805, WatchRefused{kNoSuchKind}, "wait(60000ms)"},
      {135805, TimerDone{}, "begin stream(v=)"},
      {135806, WatchRefused{kNoSuchKind}, "wait(60000ms)"},
      {195806, TimerDone{}, "begin stream(v=)"},
      {195807, WatchOpened{}, "on"},
      {195808, Bookmark{"95", true}, "finish synced advance on"}},
     "95"},
    {"AKindThatIsDefinedAnewIsListedFromTheNewest",
     kLists,
     "begin list(v= limit=500)",
     {{0, ListPageDone{"7", ""}, "finish synced advance watch(v=7)"},
      {1, WatchOpened{}, "on"},
      {5000, StreamEnded{}, "watch(v=7)"},
      {5001, WatchRefused{kNoSuchKind}, "wait(5000ms)"},
      {10001, TimerDone{}, "begin list(v= limit=500)"},
      {10002, ListFailed{kReset}, "wait(1600ms)"},
      {11602, TimerDone{}, "begin list(v= limit=500)"},
      {11603, ListPageDone{"90", ""}, "finish synced advance watch(v=90)"}},
     "90"},
    {"TwoQuietMinutesForgiveTheBackOff",
     kLists,
     "begin list(v= limit=500)",
     {{0, ListFailed{kReset}, "wait(800ms)"},
      {800, TimerDone{}, "begin list(v= limit=500)"},
      {900, ListFailed{kReset}, "wait(1600ms)"},
      {2500, TimerDone{}, "begin list(v= limit=500)"},
      {130000, ListFailed{kReset}, "wait(800ms)"}},
     ""},
    {"RetryAfterIsHonoured",
     kLists,
     "begin list(v= limit=500)",
     {{0, ListFailed{busy(seconds(7))}, "wait(7000ms)"}},
     ""},
    {"AnErrorEventThatIsNotExpiryKeepsVersionAndCache",
     kLists,
     "begin list(v= limit=500)",
     {{0, ListPageDone{"7", ""}, "finish synced advance watch(v=7)"},
      {1, WatchOpened{}, "on"},
      {2, ErrorEvent{api_error(500, Reason::kInternalError)}, "wait(800ms)"},
      {802, TimerDone{}, "watch(v=7)"},
      {803, ErrorEvent{busy(seconds(9))}, "wait(9000ms)"},
      {9803, TimerDone{}, "watch(v=7)"}},
     "7"},
    {"AWatchThatFailsForAMinuteRelists",
     kLists,
     "begin list(v= limit=500)",
     {{0, ListPageDone{"7", ""}, "finish synced advance watch(v=7)"},
      {1, WatchRefused{kReset}, "wait(800ms)"},
      {801, TimerDone{}, "watch(v=7)"},
      {61000, WatchRefused{kReset}, "wait(1600ms)"},
      {62600, TimerDone{}, "begin list(v=7)"}},
     "7"},
    {"AWatchThatEndsAtOnceWithoutAnEventIsAFailure",
     kLists,
     "begin list(v= limit=500)",
     {{0, ListPageDone{"7", ""}, "finish synced advance watch(v=7)"},
      {1, WatchOpened{}, "on"},
      {900, StreamEnded{}, "wait(800ms)"},
      {1700, TimerDone{}, "watch(v=7)"}},
     "7"},
    {"AWatchThatEndsInItsTimeIsOpenedAgainAtOnce",
     kLists,
     "begin list(v= limit=500)",
     {{0, ListPageDone{"7", ""}, "finish synced advance watch(v=7)"},
      {1, WatchOpened{}, "on"},
      {1500, StreamEnded{}, "watch(v=7)"},
      {1501, WatchOpened{}, "on"},
      {1502, ObjectEvent{kAdded, "8"}, "apply advance on"},
      {1503, StreamEnded{}, "watch(v=8)"}},
     "8"},
    {"ABrokenConnectionIsOpenedAtOnceTheFirstTime",
     kLists,
     "begin list(v= limit=500)",
     {{0, ListPageDone{"7", ""}, "finish synced advance watch(v=7)"},
      {1, WatchOpened{}, "on"},
      {2, ObjectEvent{kAdded, "8"}, "apply advance on"},
      {3, StreamFailed{kReset}, "watch(v=8)"},
      {4, WatchOpened{}, "on"},
      {5, ObjectEvent{kAdded, "9"}, "apply advance on"},
      {6, StreamFailed{kReset}, "wait(1600ms)"}},
     "9"},
    {"SilenceOpensTheWatchAgain",
     kLists,
     "begin list(v= limit=500)",
     {{0, ListPageDone{"7", ""}, "finish synced advance watch(v=7)"},
      {1, WatchOpened{}, "on"},
      {90001, Silence{}, "watch(v=7)"}},
     "7"},
    {"AnEventWithoutAVersionIsAppliedAndDoesNotAdvance",
     kLists,
     "begin list(v= limit=500)",
     {{0, ListPageDone{"7", ""}, "finish synced advance watch(v=7)"},
      {1, WatchOpened{}, "on"},
      {2, ObjectEvent{kModified, ""}, "apply on"}},
     "7"},
    {"SyntheticAddedEventsDoNotAdvance",
     kLists,
     "begin list(v= limit=500)",
     {{0, ListPageDone{"", ""}, "finish synced advance watch(v=)"},
      {1, WatchOpened{}, "on"},
      {2, ObjectEvent{kAdded, "90"}, "apply on"},
      {3, ObjectEvent{kAdded, "40"}, "apply on"},
      {4, ObjectEvent{kModified, "91"}, "apply advance on"},
      {5, ObjectEvent{kAdded, "92"}, "apply advance on"}},
     "92"},
    {"StreamsTheInitialStateWhereTheServerCan",
     kStreams,
     "begin stream(v=)",
     {{0, WatchOpened{}, "on"},
      {1, ObjectEvent{kAdded, "90"}, "apply on"},
      {2, ObjectEvent{kAdded, "40"}, "apply on"},
      {3, Bookmark{"95", false}, "on"},
      {4, Bookmark{"95", true}, "finish synced advance on"},
      {5, ObjectEvent{kAdded, "96"}, "apply advance on"},
      {9000, StreamEnded{}, "watch(v=96)"}},
     "96"},
    {"AServerWithoutWatchListIsAskedForAList",
     kStreams,
     "begin stream(v=)",
     {{0, WatchRefused{api_error(422, Reason::kInvalid)}, "begin list(v= limit=500)"},
      {1, ListPageDone{"7", ""}, "finish synced advance watch(v=7)"},
      {2, WatchRefused{kGone410}, "begin list(v=7)"}},
     "7"},
    {"AServerThatNeverEndsTheInitialEventsIsAskedForAList",
     kStreams,
     "begin stream(v=)",
     {{0, WatchOpened{}, "on"},
      {1, ObjectEvent{kAdded, "90"}, "apply on"},
      {30001, Silence{}, "begin list(v= limit=500)"}},
     ""},
    {"AForbiddenStreamIsNotTakenForAServerWithoutWatchList",
     kStreams,
     "begin stream(v=)",
     {{0, WatchRefused{api_error(403, Reason::kForbidden)}, "wait(800ms)"},
      {800, TimerDone{}, "begin stream(v=)"}},
     ""},
    {"AStreamCutInItsInitialEventsStartsAgain",
     kStreams,
     "begin stream(v=)",
     {{0, WatchOpened{}, "on"},
      {1, ObjectEvent{kAdded, "90"}, "apply on"},
      {2, StreamFailed{kReset}, "wait(800ms)"},
      {802, TimerDone{}, "begin stream(v=)"},
      {803, WatchOpened{}, "on"},
      {5000, StreamEnded{}, "wait(1600ms)"}},
     ""},
    {"AnExpiredStreamedWatchStreamsAgain",
     kStreams,
     "begin stream(v=)",
     {{0, WatchOpened{}, "on"},
      {1, Bookmark{"95", true}, "finish synced advance on"},
      {2, ErrorEvent{kGone410}, "begin stream(v=)"}},
     "95"},
};

class WatcherRules : public testing::TestWithParam<Row> {};

TEST_P(WatcherRules, Hold) {
  const Row& row = GetParam();
  WatcherState state(row.options);
  EXPECT_EQ(words(start(state, {})), row.first);
  for (const auto& line : row.lines) {
    const Moment moment{.now = Instant(milliseconds(line.at_ms))};
    EXPECT_EQ(words(step(state, line.input, moment)), line.expected) << "at " << line.at_ms;
  }
  EXPECT_EQ(state.version, row.version);
}

INSTANTIATE_TEST_SUITE_P(All, WatcherRules, testing::ValuesIn(kRows),
                         [](const auto& row) { return row.param.name; });

TEST(Watcher, JitterSpreadsWaitsAndTimeouts) {
  WatcherState state(kLists);
  start(state, {});
  const auto wait = step(state, ListFailed{kReset}, {.random = 0.5});
  EXPECT_EQ(std::get<BackOff>(wait.next).length, milliseconds(1200));
  step(state, TimerDone{}, {});
  const auto watch = step(state, ListPageDone{"1", ""}, {.random = 0.999});
  EXPECT_EQ(std::get<OpenWatch>(watch.next).timeout, seconds(599));
  EXPECT_EQ(std::get<OpenWatch>(watch.next).silence, seconds(90));
}

TEST(Watcher, TroubleIsRememberedUntilSomethingWorks) {
  WatcherState state(kLists);
  start(state, {});
  step(state, ListFailed{api_error(403, Reason::kForbidden)}, {});
  ASSERT_TRUE(state.trouble);
  EXPECT_TRUE(state.trouble->is(Reason::kForbidden));
  step(state, TimerDone{}, {});
  step(state, ListPageDone{"1", ""}, {});
  EXPECT_FALSE(state.trouble);
}

TEST(Watcher, AKindIsMissingUntilAllOfItIsListed) {
  WatcherState state(kLists);
  start(state, {});
  step(state, ListPageDone{"1", ""}, {});
  EXPECT_TRUE(state.synced);
  step(state, WatchRefused{kNoSuchKind}, {});
  EXPECT_TRUE(state.missing);
  EXPECT_FALSE(state.synced);
  step(state, TimerDone{}, {});
  step(state, ListFailed{kReset}, {});
  EXPECT_TRUE(state.missing) << "nobody said otherwise";
  step(state, TimerDone{}, {});
  step(state, ListPageDone{"9", "more"}, {});
  EXPECT_TRUE(state.missing);
  step(state, ListPageDone{"9", ""}, {});
  EXPECT_FALSE(state.missing);
  EXPECT_TRUE(state.synced);
}

TEST(Watcher, WhoMayNotAskDoesNotKnowThatAKindIsMissing) {
  WatcherState state(kLists);
  start(state, {});
  step(state, ListFailed{kNoSuchKind}, {});
  step(state, TimerDone{}, {});
  step(state, ListFailed{api_error(403, Reason::kForbidden)}, {});
  EXPECT_FALSE(state.missing);
  EXPECT_FALSE(state.synced);
}

// Whatever comes in whatever order: it never advances while it replaces, and every failure either
// waits or is the first in a while.
TEST(Watcher, NoInputBreaksTheInvariants) {
  const std::vector<WatcherInput> inputs = {ListPageDone{"5", ""},
                                            ListPageDone{"5", "t"},
                                            ListFailed{kGone410},
                                            ListFailed{kReset},
                                            ListFailed{too_large()},
                                            ListFailed{kNoSuchKind},
                                            WatchRefused{kNoSuchKind},
                                            WatchOpened{},
                                            WatchRefused{kGone410},
                                            WatchRefused{api_error(422)},
                                            WatchRefused{kReset},
                                            ObjectEvent{kAdded, "6"},
                                            ObjectEvent{kDeleted, "7"},
                                            Bookmark{"8", false},
                                            Bookmark{"8", true},
                                            ErrorEvent{kGone410},
                                            StreamEnded{},
                                            StreamFailed{kReset},
                                            Silence{},
                                            TimerDone{}};
  uint64_t seed = 1;
  for (int run = 0; run < 2000; ++run) {
    WatcherState state(run % 2 == 0 ? kLists : kStreams);
    start(state, {});
    int64_t now = 0;
    for (int i = 0; i < 50; ++i) {
      seed = seed * 6364136223846793005ULL + 1442695040888963407ULL;
      const bool was_replacing = state.replacing;
      const auto out = step(state, inputs[(seed >> 33) % inputs.size()],
                            {.now = Instant(milliseconds(now += 10)), .random = 0.3});
      ASSERT_EQ(out.begin_replace && out.finish_replace, false);
      if (out.advance && was_replacing) {
        ASSERT_TRUE(out.finish_replace);
      }
      if (const auto* wait = std::get_if<BackOff>(&out.next)) {
        ASSERT_GE(wait->length, milliseconds(800));
        ASSERT_LE(wait->length, seconds(60));
      }
    }
  }
}

}  // namespace
}  // namespace grapnel::runtime
