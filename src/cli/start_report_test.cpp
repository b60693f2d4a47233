#include "cli/start_report.h"

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <functional>

namespace grapnel::cli {
namespace {

// What one end reads of what the other says before it closes.
Result<StartReport> heard(const std::function<void(StartReporter&)>& say) {
  int ends[2];
  EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
  const Fd ours(ends[0]);
  StartReporter reporter(ends[1]);
  say(reporter);
  return read_start_report(ours.get(), milliseconds(200));
}

TEST(StartReport, SaysThatItServes) {
  const auto report = heard([](StartReporter& reporter) {
    reporter.warn("no GPU\nhere");
    reporter.warn("\"two\"");
    reporter.ready();
    reporter.warn("too late");
  });
  ASSERT_TRUE(report);
  EXPECT_TRUE(report->ready);
  EXPECT_EQ(report->warnings, (std::vector<std::string>{"no GPU\nhere", "\"two\""}));
}

TEST(StartReport, SaysWhyItDoesNot) {
  const auto report = heard([](StartReporter& reporter) { reporter.failed("no disk"); });
  ASSERT_TRUE(report);
  EXPECT_FALSE(report->ready);
  EXPECT_EQ(report->failure, "no disk");
}

TEST(StartReport, AClusterMayEndWithoutAWord) {
  const auto report =
      heard([](StartReporter& reporter) { StartReporter gone(std::move(reporter)); });
  ASSERT_TRUE(report);
  EXPECT_FALSE(report->ready);
  EXPECT_EQ(report->failure, "");
}

TEST(StartReport, OneThatSaysNothingIsNotWaitedForLongerThanThat) {
  EXPECT_FALSE(heard([](StartReporter&) {}));
}

TEST(StartReport, WithoutAPipeNobodyIsTold) {
  StartReporter reporter(-1);
  reporter.warn("x");
  reporter.ready();
}

}  // namespace
}  // namespace grapnel::cli
