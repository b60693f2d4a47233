// An event loop on virtual time: everything that can run runs, then time jumps to the next sleeper.
#pragma once

#include <boost/asio/io_context.hpp>

#include "base/async.h"
#include "tests/simulation/virtual_clock.h"

namespace grapnel::simulation {

struct VirtualLoop {
  boost::asio::io_context context{1};
  VirtualClock clock;

  Executor executor() { return context.get_executor(); }

  void settle() {
    context.restart();
    context.poll();
  }

  // Runs until `done` says so; false when nothing is left to do before that, or time is over.
  template <class Predicate>
  bool run_until(Predicate done, Duration limit = hours(24)) {
    const Instant end = clock.instant() + limit;
    for (;;) {
      settle();
      if (done()) return true;
      if (!clock.wake_next(end)) return false;
    }
  }

  void run_for(Duration length) {
    const Instant end = clock.instant() + length;
    run_until([] { return false; }, length);
    clock.advance(end - clock.instant());
  }
};

}  // namespace grapnel::simulation
