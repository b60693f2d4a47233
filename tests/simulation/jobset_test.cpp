// Schedules of JobSets that once went wrong.
#include "tests/simulation/jobset.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/log.h"
#include "tests/simulation/world.h"

namespace grapnel::simulation {
namespace {

std::optional<std::string> violation(uint64_t seed, JobSetOptions options) {
  log_setup(LogFormat::kText, static_cast<LogLevel>(99));
  const auto subject = make_jobset_subject(options);
  return World(seed, *subject).run().violation;
}

// A pod that was in deletion before its node was seen to be lost held up the restart until some
// other event came.
TEST(JobSetSchedules, ABlockingRestartGoesOnWithoutALostNode) {
  for (uint64_t seed = 41; seed <= 80; ++seed) {  // six of them found it
    EXPECT_EQ(violation(seed, {.blocks_and_loses_nodes = true}), std::nullopt);
  }
}

}  // namespace
}  // namespace grapnel::simulation
