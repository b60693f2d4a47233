#include "runtime/queue.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/simulation/virtual_clock.h"

namespace grapnel::runtime {
namespace {

using testing::ElementsAre;
constexpr auto kLow = Queue::Priority::kLow;

kube::Key key(std::string name) {
  return {Interned("default"), std::move(name)};
}

struct QueueTest : testing::Test {
  simulation::VirtualClock clock;
  Random random{1};
  Queue queue{clock, random, {.jitter = 0}};
  size_t lane = queue.add_lane("echo", 2);

  // The name of the key taken, "" for none.
  std::string take() {
    const auto item = queue.take();
    return item ? item->key.name : "";
  }
  void done(std::string name) { queue.done({lane, key(std::move(name))}); }
};

TEST_F(QueueTest, AKeyAddedManyTimesIsTakenOnceInOrder) {
  queue.add(lane, key("a"));
  queue.add(lane, key("b"));
  queue.add(lane, key("a"));
  EXPECT_EQ(take(), "a");
  EXPECT_EQ(take(), "b");
  EXPECT_EQ(take(), "");
}

TEST_F(QueueTest, AKeyIsNeverWorkedOnTwiceAtOnce) {
  queue.add(lane, key("a"));
  EXPECT_EQ(take(), "a");
  queue.add(lane, key("a"));
  queue.add(lane, key("a"));
  EXPECT_EQ(take(), "") << "it is being worked on";
  done("a");
  EXPECT_EQ(take(), "a") << "what was added meanwhile is not lost";
  done("a");
  EXPECT_EQ(take(), "");
}

TEST_F(QueueTest, AClosedLaneKeepsItsKeysAndHoldsNobodyUp) {
  const size_t other = queue.add_lane("other", 2);
  int woken = 0;
  queue.set_open(lane, false);
  queue.add(lane, key("a"));
  queue.add_after(lane, key("b"), seconds(1));
  queue.add(other, key("c"));
  clock.advance(seconds(2));
  EXPECT_EQ(queue.take(), (Queue::Item{other, key("c")}));
  EXPECT_EQ(queue.take(), std::nullopt);
  EXPECT_EQ(queue.next_due(), std::nullopt) << "nothing to wake up for";
  queue.on_ready([&] { ++woken; });
  queue.set_open(lane, true);
  EXPECT_EQ(woken, 1);
  EXPECT_EQ(take(), "a");
  EXPECT_EQ(take(), "b");
}

TEST_F(QueueTest, ALaneTakesNoMoreThanItMayAtOnce) {
  for (const auto* name : {"a", "b", "c"}) queue.add(lane, key(name));
  EXPECT_EQ(take(), "a");
  EXPECT_EQ(take(), "b");
  EXPECT_EQ(take(), "");
  done("b");
  EXPECT_EQ(take(), "c");
}

TEST_F(QueueTest, LanesTakeTurns) {
  const size_t other = queue.add_lane("other", 10);
  Queue fair(clock, random);
  const size_t one = fair.add_lane("one", 100);
  const size_t two = fair.add_lane("two", 100);
  for (int i = 0; i < 4; ++i) fair.add(one, key(fmt::format("one-{}", i)));
  fair.add(two, key("two-0"));
  fair.add(two, key("two-1"));
  std::vector<std::string> order;
  while (const auto item = fair.take()) order.push_back(item->key.name);
  EXPECT_THAT(order, ElementsAre("one-0", "two-0", "one-1", "two-1", "one-2", "one-3"));
  queue.add(lane, key("a"));
  queue.add(other, key("a"));
  EXPECT_EQ(queue.take()->lane, lane) << "the same key in two lanes is two keys";
  EXPECT_EQ(queue.take()->lane, other);
}

TEST_F(QueueTest, OfSeveralDelaysTheEarliestCounts) {
  queue.add_after(lane, key("a"), seconds(10));
  queue.add_after(lane, key("a"), seconds(3));
  queue.add_after(lane, key("a"), seconds(20));
  EXPECT_EQ(queue.next_due(), clock.instant() + seconds(3));
  clock.advance(milliseconds(2999));
  EXPECT_EQ(take(), "");
  clock.advance(milliseconds(1));
  EXPECT_EQ(take(), "a");
  EXPECT_EQ(queue.next_due(), std::nullopt);
}

TEST_F(QueueTest, AnAddDuringADelayIsNotLostNorIsTheDelay) {
  queue.add_after(lane, key("a"), seconds(10));
  queue.add(lane, key("a"));
  EXPECT_EQ(take(), "a");
  done("a");
  EXPECT_EQ(take(), "");
  clock.advance(seconds(10));
  EXPECT_EQ(take(), "a");
}

TEST_F(QueueTest, ADelayThatEndsWhileTheKeyIsWorkedOnBringsItBack) {
  queue.add(lane, key("a"));
  EXPECT_EQ(take(), "a");
  queue.add_after(lane, key("a"), seconds(1));
  clock.advance(seconds(2));
  EXPECT_EQ(take(), "");
  done("a");
  EXPECT_EQ(take(), "a");
}

TEST_F(QueueTest, TheBackOffDoublesUpToItsCap) {
  struct Row {
    int failures;
    Duration expected;
  };
  for (const auto& row :
       {Row{0, milliseconds(5)}, Row{1, milliseconds(10)}, Row{4, milliseconds(80)},
        Row{10, milliseconds(5120)}, Row{17, milliseconds(655360)}, Row{18, seconds(1000)},
        Row{60, seconds(1000)}}) {
    Queue fresh(clock, random, {.jitter = 0});
    const size_t only = fresh.add_lane("x", 1);
    for (int i = 0; i < row.failures; ++i) {
      fresh.retry(only, key("a"));
      clock.advance(seconds(1001));
      const auto item = fresh.take();
      ASSERT_TRUE(item);
      fresh.done(*item);
    }
    fresh.retry(only, key("a"));
    EXPECT_EQ(fresh.next_due().value() - clock.instant(), row.expected) << row.failures;
  }
}

TEST_F(QueueTest, ForgettingStartsTheBackOffAgain) {
  queue.retry(lane, key("a"));
  queue.retry(lane, key("a"));
  EXPECT_EQ(queue.failures(lane, key("a")), 2);
  queue.forget(lane, key("a"));
  EXPECT_EQ(queue.failures(lane, key("a")), 0);
  clock.advance(seconds(1));
  EXPECT_EQ(take(), "a");
  queue.retry(lane, key("a"));
  EXPECT_EQ(queue.next_due(), clock.instant() + milliseconds(5));
}

TEST_F(QueueTest, ARetryWaitsAtLeastAsLongAsTheServerAsks) {
  queue.retry(lane, key("a"), seconds(7));
  EXPECT_EQ(queue.next_due(), clock.instant() + seconds(7));
}

TEST_F(QueueTest, JitterOnlyLengthensABackOff) {
  Queue spread(clock, random, {.jitter = 0.5});
  const size_t only = spread.add_lane("x", 1);
  for (int i = 0; i < 100; ++i) {
    spread.retry(only, key(std::to_string(i)));
    const auto due = spread.next_due().value() - clock.instant();
    EXPECT_GE(due, milliseconds(5));
    EXPECT_LE(due, microseconds(7500));
  }
}

TEST_F(QueueTest, LowPriorityWaitsBehindOthersButOnlyForSoLong) {
  queue.add(lane, key("low"), kLow);
  clock.advance(seconds(1));
  queue.add(lane, key("normal"));
  EXPECT_EQ(take(), "normal");
  done("normal");
  clock.advance(seconds(5));
  queue.add(lane, key("later"));
  EXPECT_EQ(take(), "low") << "it has aged past what came after it";
  EXPECT_EQ(take(), "later");
}

TEST_F(QueueTest, AKeyAloneIsTakenAtOnceWhateverItsPriority) {
  queue.add(lane, key("low"), kLow);
  EXPECT_EQ(take(), "low");
}

TEST_F(QueueTest, AnEventRaisesAKeyOfLowPriority) {
  queue.add(lane, key("low"), kLow);
  queue.add(lane, key("normal"));
  queue.add(lane, key("low"));
  queue.add(lane, key("normal"), kLow);
  EXPECT_EQ(take(), "normal");
  EXPECT_EQ(take(), "low");
  EXPECT_EQ(take(), "");
}

TEST_F(QueueTest, TellsWhenThereIsSomethingToTake) {
  int calls = 0;
  queue.on_ready([&] { ++calls; });
  queue.add(lane, key("a"));
  EXPECT_EQ(calls, 1);
  queue.add(lane, key("a"));
  EXPECT_EQ(calls, 1) << "nothing new";
  queue.add_after(lane, key("b"), seconds(5));
  EXPECT_EQ(calls, 2) << "the time of the next wake-up has changed";
  queue.add_after(lane, key("c"), seconds(9));
  EXPECT_EQ(calls, 2);
}

TEST_F(QueueTest, MeasuresWhatIsUnderWay) {
  queue.add(lane, key("a"));
  queue.add(lane, key("b"));
  take();
  clock.advance(seconds(2));
  take();
  clock.advance(seconds(1));
  EXPECT_EQ(queue.unfinished(lane).longest, seconds(3));
  EXPECT_EQ(queue.unfinished(lane).sum, seconds(4));
  EXPECT_EQ(queue.processing(lane), 2U);
}

struct Recorder : QueueObserver {
  std::vector<std::string> calls;
  void added(size_t) override { calls.push_back("added"); }
  void depth(size_t, size_t n) override { calls.push_back(fmt::format("depth {}", n)); }
  void taken(size_t, Duration d) override {
    calls.push_back(fmt::format("taken after {}s", d.count() / 1000000));
  }
  void finished(size_t, Duration d) override {
    calls.push_back(fmt::format("finished in {}s", d.count() / 1000000));
  }
  void retried(size_t) override { calls.push_back("retried"); }
};

TEST_F(QueueTest, TheObserverSeesEachMove) {
  Recorder recorder;
  queue.set_observer(&recorder);
  queue.add(lane, key("a"));
  clock.advance(seconds(2));
  take();
  clock.advance(seconds(1));
  queue.retry(lane, key("a"));
  done("a");
  EXPECT_THAT(recorder.calls, ElementsAre("added", "depth 1", "depth 0", "taken after 2s",
                                          "retried", "finished in 1s"));
}

// What the queue must do, said in the simplest way.
struct QueueModel {
  std::set<std::string> owed;
  std::map<std::string, Instant> delayed;
  std::set<std::string> running;

  void release(Instant now) {
    for (auto i = delayed.begin(); i != delayed.end();) {
      if (i->second > now) {
        ++i;
        continue;
      }
      owed.insert(i->first);
      i = delayed.erase(i);
    }
  }
  void delay(const std::string& name, Instant until) {
    const auto [at, fresh] = delayed.emplace(name, until);
    if (!fresh) at->second = std::min(at->second, until);
  }
  bool could_take() const {
    return running.size() < 3 &&
           std::ranges::any_of(owed, [&](const auto& name) { return !running.contains(name); });
  }
};

TEST_F(QueueTest, NothingIsLostAndNothingRunsTwiceUnderAnyOrder) {
  for (uint64_t seed = 0; seed < 300; ++seed) {
    Random dice(seed);
    Queue q(clock, dice);
    const size_t only = q.add_lane("x", 3);
    QueueModel model;
    for (int i = 0; i < 300; ++i) {
      const std::string name = std::to_string(dice.below(6));
      const auto delay = milliseconds(1 + dice.below(50));
      switch (dice.below(5)) {
        case 0:
          q.add(only, key(name), dice.chance(0.5) ? kLow : Queue::Priority::kNormal);
          model.owed.insert(name);
          break;
        case 1:
          q.add_after(only, key(name), delay);
          model.delay(name, clock.instant() + delay);
          break;
        case 2:
          clock.advance(milliseconds(dice.below(20)));
          break;
        case 3: {
          model.release(clock.instant());
          const auto item = q.take();
          ASSERT_EQ(item.has_value(), model.could_take()) << "seed " << seed;
          if (!item) break;
          ASSERT_EQ(model.owed.erase(item->key.name), 1U) << "seed " << seed;
          ASSERT_TRUE(model.running.insert(item->key.name).second) << "seed " << seed;
          break;
        }
        default:
          if (model.running.erase(name) == 1) q.done({only, key(name)});
      }
    }
  }
}

}  // namespace
}  // namespace grapnel::runtime
