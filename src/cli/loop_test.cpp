#include "cli/loop.h"

#include <gtest/gtest.h>

#include <csignal>

namespace grapnel::cli {
namespace {

Task<int> take_both(Executor executor) {
  Interrupts interrupts(executor);
  for (const int signal : {SIGINT, SIGTERM}) std::raise(signal);
  // Busy with something else while they come, as with a request to an API server.
  while (interrupts.count() < 2) co_await system_clock().sleep(milliseconds(1));
  co_await interrupts.next();
  co_await interrupts.next();
  co_return interrupts.count();
}

TEST(Interrupts, NoneIsLostThatComesWhileNobodyWaits) {
  EXPECT_EQ(run_loop(take_both), 2);
}

}  // namespace
}  // namespace grapnel::cli
