#include "local/apiserver/exec_stream.h"

#include <gtest/gtest.h>

namespace grapnel::local {
namespace {

TEST(ExitStatus, OfACommandThatEndedWell) {
  EXPECT_EQ(to_text(exit_status(PodExit{})), R"({"metadata":{},"status":"Success"})");
}

TEST(ExitStatus, CarriesTheCode) {
  const Json status = exit_status(PodExit{.code = 9});
  EXPECT_EQ(string_or(find(status, "reason")), "NonZeroExitCode");
  EXPECT_EQ(to_text(*at(status, "details", "causes")), R"([{"reason":"ExitCode","message":"9"}])");
}

TEST(ExitStatus, SaysWhyACommandCouldNotBeRun) {
  const Json status = exit_status(PodExit{.code = 126, .error = "no such program"});
  EXPECT_EQ(string_or(find(status, "message")), "no such program");
  EXPECT_EQ(string_or(find(status, "reason")), "InternalError");
  const Json refused = exit_status(fail(Reason::kBadRequest, "container is not running"));
  EXPECT_EQ(string_or(find(refused, "message")), "container is not running");
}

}  // namespace
}  // namespace grapnel::local
