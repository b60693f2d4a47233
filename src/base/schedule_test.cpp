#include "base/schedule.h"

#include <gtest/gtest.h>

namespace grapnel {
namespace {

struct Case {
  std::string_view schedule;
  std::string_view after;
  std::string_view next;  // "": never
  std::string zone = "";
};

class ScheduleNext : public testing::TestWithParam<Case> {};

TEST_P(ScheduleNext, Is) {
  const Case& c = GetParam();
  const auto schedule = Schedule::parse(c.schedule);
  ASSERT_TRUE(schedule) << schedule.error().message;
  const auto zone = c.zone.empty() ? TimeZone::utc() : TimeZone::find(c.zone);
  ASSERT_TRUE(zone) << "the package tzdata is needed";
  const auto next = schedule->next_after(*parse_time(c.after), *zone);
  EXPECT_EQ(next ? format_time(*next) : "", c.next);
}

INSTANTIATE_TEST_SUITE_P(
    Table, ScheduleNext,
    testing::Values(
        Case{"* * * * *", "2026-01-01T00:00:00Z", "2026-01-01T00:01:00Z"},
        Case{"* * * * *", "2026-01-01T00:00:59Z", "2026-01-01T00:01:00Z"},
        Case{"*/15 * * * *", "2026-01-01T00:46:00Z", "2026-01-01T01:00:00Z"},
        Case{"5/20 3 * * *", "2026-01-01T03:25:00Z", "2026-01-01T03:45:00Z"},
        Case{"0 0 1 1 *", "2026-01-01T00:00:00Z", "2027-01-01T00:00:00Z"},
        Case{"0 9-17/4 * * *", "2026-01-01T09:00:00Z", "2026-01-01T13:00:00Z"},
        Case{"0 12 * * mon-fri", "2026-01-02T12:00:00Z", "2026-01-05T12:00:00Z"},
        Case{"0 0 13 * fri", "2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z"},
        Case{"0 0 29 feb *", "2026-01-01T00:00:00Z", "2028-02-29T00:00:00Z"},
        Case{"0 0 30 2 *", "2026-01-01T00:00:00Z", ""},
        Case{"@hourly", "2026-01-01T00:00:00Z", "2026-01-01T01:00:00Z"},
        Case{"0 12 * * *", "2026-07-01T00:00:00Z", "2026-07-01T10:00:00Z", "Europe/Paris"},
        // Half past two does not exist on the night when summer begins.
        Case{"30 2 * * *", "2026-03-28T12:00:00Z", "2026-03-30T00:30:00Z", "Europe/Paris"}));

class BadSchedule : public testing::TestWithParam<std::string_view> {};

TEST_P(BadSchedule, IsRefused) {
  EXPECT_FALSE(Schedule::parse(GetParam()));
}

INSTANTIATE_TEST_SUITE_P(Table, BadSchedule,
                         testing::Values("", "* * * *", "* * * * * *", "60 * * * *", "* 24 * * *",
                                         "* * 0 * *", "* * * 13 *", "* * * * 7", "5-1 * * * *",
                                         "*/0 * * * *", "a * * * *", ", * * * *", "1- * * * *",
                                         "@every", "99999999999 * * * *"));

}  // namespace
}  // namespace grapnel
