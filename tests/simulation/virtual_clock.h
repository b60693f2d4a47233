// Time that moves only when it is told to: the clock of simulations and of unit tests.
#pragma once

#include <algorithm>
#include <functional>
#include <map>
#include <utility>

#include "base/async.h"

namespace grapnel::simulation {

class VirtualClock final : public Clock {
 public:
  Time now() const override { return Time(hours(24 * 365 * 56)) + elapsed(); }
  Instant instant() const override { return now_; }
  Duration elapsed() const { return now_ - Instant(seconds(1)); }

  Task<> sleep_until(Instant when) override {
    Sleeper sleeper(co_await this_executor());
    const Place place{*this, wakes_
                                 .emplace(Rank{when, ++number_},
                                          [this, &sleeper] {
                                            sleeper.woken = true;
                                            sleeper.signal.notify_all();
                                            touched_ = true;
                                          })
                                 .first->first};
    while (!sleeper.woken) co_await sleeper.signal.wait();
  }

  // Calls f at that moment, outside of any loop.
  void at(Instant when, std::function<void()> f) {
    wakes_.emplace(Rank{when, ++number_}, std::move(f));
  }
  void after(Duration delay, std::function<void()> f) { at(now_ + delay, std::move(f)); }

  // Whether anything was done since the last call that lets a coroutine go on. Loops are polled
  // only then: each poll costs a system call.
  bool take_touched() { return std::exchange(touched_, false); }
  void touch() { touched_ = true; }

  // Only moves: what was due is done by wake_next().
  void advance(Duration length) { now_ += length; }

  // Moves to the next thing that is due and does it. False: there is none before `limit`.
  bool wake_next(Instant limit = Instant::max()) {
    if (wakes_.empty() || wakes_.begin()->first.first > limit) return false;
    const auto next = wakes_.extract(wakes_.begin());
    now_ = std::max(now_, next.key().first);
    next.mapped()();
    return true;
  }

 private:
  // Things due at the same moment keep the order in which they were asked for.
  using Rank = std::pair<Instant, uint64_t>;
  struct Sleeper {
    explicit Sleeper(Executor executor) : signal(std::move(executor)) {}
    Signal signal;
    bool woken = false;
  };
  struct Place {
    VirtualClock& clock;
    Rank rank;
    ~Place() { clock.wakes_.erase(rank); }
  };

  Instant now_{seconds(1)};
  std::map<Rank, std::function<void()>> wakes_;
  uint64_t number_ = 0;
  bool touched_ = true;
};

}  // namespace grapnel::simulation
