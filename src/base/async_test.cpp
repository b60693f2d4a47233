#include "base/async.h"

#include <gtest/gtest.h>

namespace grapnel {
namespace {

struct AsyncTest : testing::Test {
  boost::asio::io_context loop;
  Executor executor = loop.get_executor();
  Clock& clock = system_clock();

  void run(Task<> task) {
    auto main = spawn(executor, std::move(task));
    loop.run_for(seconds(10));
    ASSERT_TRUE(main.done()) << "still waiting after 10 s";
  }
};

TEST_F(AsyncTest, SpawnedTaskRunsAndCanBeJoined) {
  int ran = 0;
  run([](AsyncTest& t, int& count) -> Task<> {
    auto child = spawn(t.executor, [](int& n) -> Task<> {
      ++n;
      co_return;
    }(count));
    co_await child.join();
    EXPECT_TRUE(child.done());
  }(*this, ran));
  EXPECT_EQ(ran, 1);
}

TEST_F(AsyncTest, DroppingTheHandleCancelsTheTask) {
  bool unwound = false;
  bool went_on = false;
  run([](AsyncTest& t, bool& ended, bool& reached) -> Task<> {
    {
      auto child = spawn(t.executor, [](Clock& c, bool& e, bool& r) -> Task<> {
        struct Guard {
          bool& flag;
          ~Guard() { flag = true; }
        } guard{e};
        co_await c.sleep(hours(1));
        r = true;
      }(t.clock, ended, reached));
      co_await t.clock.sleep(milliseconds(1));
    }
    co_await t.clock.sleep(milliseconds(1));
  }(*this, unwound, went_on));
  EXPECT_TRUE(unwound);
  EXPECT_FALSE(went_on);
}

TEST_F(AsyncTest, CancellationReachesATaskThatWaitsForASignal) {
  bool went_on = false;
  run([](AsyncTest& t, bool& reached) -> Task<> {
    Signal signal(t.executor);
    auto child = spawn(t.executor, [](Signal& s, bool& r) -> Task<> {
      co_await s.wait();
      r = true;
    }(signal, reached));
    co_await t.clock.sleep(milliseconds(1));
    child.cancel();
    co_await child.join();
  }(*this, went_on));
  EXPECT_FALSE(went_on);
}

TEST_F(AsyncTest, AHandleMayBeDroppedOutsideTheLoopJustBeforeItsTaskEnds) {
  Signal signal(executor);
  bool unwound = false;
  {
    auto child = spawn(executor, [](Signal& s, bool& flag) -> Task<> {
      struct Guard {
        bool& flag;
        ~Guard() { flag = true; }
      } guard{flag};
      co_await s.wait();
    }(signal, unwound));
    loop.run_for(milliseconds(1));
    signal.notify_all();
  }
  EXPECT_FALSE(unwound);
  loop.restart();
  loop.run_for(seconds(10));
  // Whichever came first, the task has ended, and nothing waits for it any more.
  EXPECT_TRUE(unwound);
  EXPECT_TRUE(loop.stopped());
}

// As in a simulated crash: the loop goes first, then what ran on it.
TEST(Async, HandlesMayOutliveTheLoop) {
  bool unwound = false;
  auto loop = std::make_unique<boost::asio::io_context>();
  Signal signal(loop->get_executor());
  auto task = spawn(loop->get_executor(), [](Signal& s, bool& flag) -> Task<> {
    struct Guard {
      bool& flag;
      ~Guard() { flag = true; }
    } guard{flag};
    const auto child = spawn(co_await this_executor(),
                             [](Signal& waited) -> Task<> { co_await waited.wait(); }(s));
    co_await with_deadline(system_clock(), system_clock().instant() + hours(1), s.wait());
  }(signal, unwound));
  loop->poll();
  EXPECT_FALSE(task.done());
  loop.reset();
  EXPECT_TRUE(unwound);
  EXPECT_TRUE(task.done());
  task.cancel();
  signal.notify_all();
}

TEST_F(AsyncTest, SignalWakesEveryWaiter) {
  int woken = 0;
  run([](AsyncTest& t, int& count) -> Task<> {
    Signal signal(t.executor);
    auto waiter = [](Signal& s, int& n) -> Task<> {
      co_await s.wait();
      ++n;
    };
    auto a = spawn(t.executor, waiter(signal, count));
    auto b = spawn(t.executor, waiter(signal, count));
    co_await t.clock.sleep(milliseconds(1));
    signal.notify_all();
    co_await a.join();
    co_await b.join();
  }(*this, woken));
  EXPECT_EQ(woken, 2);
}

TEST_F(AsyncTest, DeadlineCutsOffASlowTaskAndSparesAFastOne) {
  run([](AsyncTest& t) -> Task<> {
    const Instant soon = t.clock.instant() + milliseconds(5);
    EXPECT_FALSE(co_await with_deadline(t.clock, soon, t.clock.sleep(hours(1))));
    const Instant late = t.clock.instant() + hours(1);
    EXPECT_TRUE(co_await with_deadline(t.clock, late, t.clock.sleep(milliseconds(1))));
  }(*this));
}

TEST_F(AsyncTest, CancellationReachesATaskWithADeadline) {
  run([](AsyncTest& t) -> Task<> {
    auto child = spawn(t.executor, [](Clock& c) -> Task<> {
      co_await with_deadline(c, c.instant() + hours(1), c.sleep(hours(1)));
      ADD_FAILURE() << "was to be cancelled";
    }(t.clock));
    co_await t.clock.sleep(milliseconds(1));
    child.cancel();
    co_await child.join();
    EXPECT_TRUE(child.done());
  }(*this));
}

TEST_F(AsyncTest, AllRunsTasksTogether) {
  int running = 0;
  int most = 0;
  run([](AsyncTest& t, int& now, int& peak) -> Task<> {
    std::vector<Task<>> tasks;
    for (int i = 0; i < 8; ++i) {
      tasks.push_back([](Clock& c, int& n, int& p) -> Task<> {
        p = std::max(p, ++n);
        co_await c.sleep(milliseconds(2));
        --n;
      }(t.clock, now, peak));
    }
    co_await all(std::move(tasks));
  }(*this, running, most));
  EXPECT_EQ(running, 0);
  EXPECT_EQ(most, 8);
}

TEST_F(AsyncTest, SemaphoreBoundsHowManyRunAtOnce) {
  int running = 0;
  int most = 0;
  run([](AsyncTest& t, int& now, int& peak) -> Task<> {
    Semaphore permits(t.executor, 3);
    std::vector<Task<>> tasks;
    for (int i = 0; i < 10; ++i) {
      tasks.push_back([](Clock& c, Semaphore& s, int& n, int& p) -> Task<> {
        auto permit = co_await s.acquire();
        p = std::max(p, ++n);
        co_await c.sleep(milliseconds(1));
        --n;
      }(t.clock, permits, now, peak));
    }
    co_await all(std::move(tasks));
  }(*this, running, most));
  EXPECT_EQ(most, 3);
}

Task<> work(Semaphore& turn, std::string& order, char name) {
  const auto permit = co_await turn.acquire();
  order += name;
}

TEST_F(AsyncTest, SemaphoreShrinksAndGrows) {
  run([](AsyncTest& t) -> Task<> {
    Semaphore permits(t.executor, 3);
    std::string order;
    auto a = std::make_optional(co_await permits.acquire());
    auto b = std::make_optional(co_await permits.acquire());
    permits.shrink();  // the free one
    permits.shrink();  // the next that comes back
    auto c = spawn(t.executor, work(permits, order, 'c'));
    co_await t.clock.sleep(milliseconds(1));
    EXPECT_EQ(order, "");
    a.reset();
    co_await t.clock.sleep(milliseconds(1));
    EXPECT_EQ(order, "");
    b.reset();
    co_await c.join();
    EXPECT_EQ(order, "c");

    a.emplace(co_await permits.acquire());
    permits.shrink();
    permits.grow();  // takes that back
    permits.grow();
    co_await work(permits, order, 'd');
    EXPECT_EQ(order, "cd");
  }(*this));
}

TEST_F(AsyncTest, SemaphoreIsGivenInTheOrderOfAsking) {
  std::string order;
  run([](AsyncTest& t, std::string& out) -> Task<> {
    Semaphore turn(t.executor, 1);
    auto first = std::make_optional(co_await turn.acquire());
    auto b = spawn(t.executor, work(turn, out, 'b'));
    auto cancelled = spawn(t.executor, work(turn, out, 'x'));
    auto c = spawn(t.executor, work(turn, out, 'c'));
    co_await t.clock.sleep(milliseconds(1));
    cancelled.cancel();
    first.reset();
    // It is free again, but others have waited for it.
    co_await work(turn, out, 'd');
    auto last = spawn(t.executor, work(turn, out, 'e'));
    for (Spawned* task : {&b, &cancelled, &c, &last}) co_await task->join();
  }(*this, order));
  EXPECT_EQ(order, "bcde");
}

TEST_F(AsyncTest, SemaphoreGrantedToWhomIsCancelledGoesToTheNext) {
  std::string order;
  run([](AsyncTest& t, std::string& out) -> Task<> {
    Semaphore turn(t.executor, 1);
    auto first = std::make_optional(co_await turn.acquire());
    auto cancelled = spawn(t.executor, work(turn, out, 'x'));
    auto b = spawn(t.executor, work(turn, out, 'b'));
    co_await t.clock.sleep(milliseconds(1));
    first.reset();
    cancelled.cancel();
    for (Spawned* task : {&cancelled, &b}) co_await task->join();
  }(*this, order));
  EXPECT_TRUE(order == "b" || order == "xb") << order;
}

}  // namespace
}  // namespace grapnel
