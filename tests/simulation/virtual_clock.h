// Time that moves only when it is told to: the clock of simulations and of unit tests.
#pragma once

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
    const Place place{*this, sleepers_.emplace(std::pair(when, ++number_), &sleeper).first};
    while (!sleeper.woken) co_await sleeper.signal.wait();
  }

  // Only moves: whoever sleeps is woken by wake_next().
  void advance(Duration length) { now_ += length; }

  // Moves to the end of the shortest sleep and wakes its sleeper. False: nobody sleeps, or only
  // beyond `limit`.
  bool wake_next(Instant limit = Instant::max()) {
    for (const auto& [at, sleeper] : sleepers_) {
      if (sleeper->woken) continue;
      if (at.first > limit) return false;
      now_ = std::max(now_, at.first);
      sleeper->woken = true;
      sleeper->signal.notify_all();
      return true;
    }
    return false;
  }

 private:
  struct Sleeper {
    explicit Sleeper(Executor executor) : signal(std::move(executor)) {}
    Signal signal;
    bool woken = false;
  };
  // In the order in which they fell asleep, among those that wake at the same moment.
  using Sleepers = std::map<std::pair<Instant, uint64_t>, Sleeper*>;
  struct Place {
    VirtualClock& clock;
    Sleepers::iterator at;
    ~Place() { clock.sleepers_.erase(at); }
  };

  Instant now_{seconds(1)};
  Sleepers sleepers_;
  uint64_t number_ = 0;
};

}  // namespace grapnel::simulation
