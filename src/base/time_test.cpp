#include "base/time.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

namespace grapnel {
namespace {

Time at(int64_t second, int64_t micro = 0) {
  return Time(seconds(second) + microseconds(micro));
}

TEST(Time, FormatsWholeSecondsAndSixDecimals) {
  EXPECT_EQ(format_time(at(0)), "1970-01-01T00:00:00Z");
  EXPECT_EQ(format_time(at(1794731186, 999'999)), "2026-11-15T08:26:26Z");
  EXPECT_EQ(format_micro_time(at(1794731186, 123'456)), "2026-11-15T08:26:26.123456Z");
  EXPECT_EQ(format_micro_time(at(1794731186)), "2026-11-15T08:26:26.000000Z");
  EXPECT_EQ(format_micro_time(at(-1, 1)), "1969-12-31T23:59:59.000001Z");
  EXPECT_EQ(format_time(Time::max()), "9999-12-31T23:59:59Z");
  EXPECT_EQ(format_time(Time::min()), "0000-01-01T00:00:00Z");
}

TEST(Time, ParsesRfc3339) {
  struct Row {
    std::string_view text;
    std::optional<Time> time;
  };
  const Row rows[] = {
      {"2026-11-15T08:26:26Z", at(1794731186)},
      {"2026-11-15T08:26:26.5Z", at(1794731186, 500'000)},
      {"2026-11-15T08:26:26.123456789Z", at(1794731186, 123'456)},
      {"2026-11-15T10:26:26+02:00", at(1794731186)},
      {"2026-11-15T01:56:26-06:30", at(1794731186)},
      {"2024-02-29T00:00:00Z", at(1709164800)},
      {"2023-02-29T00:00:00Z", {}},
      {"2026-13-01T00:00:00Z", {}},
      {"2026-00-01T00:00:00Z", {}},
      {"2026-11-15T24:00:00Z", {}},
      {"2026-11-15T08:26:60Z", {}},
      {"2026-11-15T08:26:26", {}},
      {"2026-11-15T08:26:26.Z", {}},
      {"2026-11-15T08:26:26Z ", {}},
      {"2026-11-15T08:26:26+0200", {}},
      {"2026-11-15 08:26:26Z", {}},
      {"2026-11-15", {}},
      {"", {}},
  };
  for (const Row& row : rows) EXPECT_EQ(parse_time(row.text), row.time) << row.text;
}

TEST(Time, ParsesWhatItFormats) {
  EXPECT_TRUE(rc::check([] {
    const Time time = at(*rc::gen::inRange<int64_t>(-62'167'219'200, 253'402'300'800),
                         *rc::gen::inRange(0, 1'000'000));
    RC_ASSERT(parse_time(format_micro_time(time)) == time);
    RC_ASSERT(parse_time(format_time(time)) == std::chrono::floor<seconds>(time));
  }));
}

TEST(Duration, ParsesGoNotation) {
  struct Row {
    std::string_view text;
    std::optional<Duration> length;
  };
  const Row rows[] = {
      {"0", Duration(0)},
      {"300ms", milliseconds(300)},
      {"1h30m", minutes(90)},
      {"1.5s", milliseconds(1500)},
      {"-2m", -minutes(2)},
      {"+5s", seconds(5)},
      {".5s", milliseconds(500)},
      {"1.s", seconds(1)},
      {"10us", microseconds(10)},
      {"10µs", microseconds(10)},
      {"10μs", microseconds(10)},
      {"1500ns", microseconds(1)},
      {"0.3333333333333333333h", microseconds(1199'999'999)},
      {"1m1m", minutes(2)},
      {"5", {}},
      {"", {}},
      {"-", {}},
      {".s", {}},
      {"s", {}},
      {"1d", {}},
      {"1h 30m", {}},
      {"3000000h", {}},
      {"99999999999999999999s", {}},
  };
  for (const Row& row : rows) EXPECT_EQ(parse_go_duration(row.text), row.length) << row.text;
}

TEST(Duration, ParsesManifestNotation) {
  struct Row {
    std::string_view text;
    std::optional<Duration> length;
  };
  const Row rows[] = {
      {"1w 2d 5h 6m 20s", seconds(((9 * 24 + 5) * 60 + 6) * 60 + 20)},
      {"2d", hours(48)},
      {"1h 5s", seconds(3605)},
      {"1h  5s", seconds(3605)},
      {"0s", seconds(0)},
      {"", {}},
      {" 1h", {}},
      {"1h ", {}},
      {"1h5s", {}},
      {"5s 1h", {}},
      {"1h 1h", {}},
      {"1.5h", {}},
      {"-1h", {}},
      {"h", {}},
      {"1", {}},
      {"52142w", seconds(int64_t{52142} * 7 * 86400)},
      {"52143w", {}},
      {"99999999999999999999w", {}},
  };
  for (const Row& row : rows) EXPECT_EQ(parse_manifest_duration(row.text), row.length) << row.text;
}

TEST(Duration, ShowsAgesAsKubectl) {
  struct Row {
    Duration age;
    std::string_view text;
  };
  const Row rows[] = {
      {seconds(-5), "<invalid>"},  {seconds(-1), "0s"},        {seconds(5), "5s"},
      {seconds(119), "119s"},      {seconds(120), "2m"},       {seconds(192), "3m12s"},
      {minutes(10), "10m"},        {minutes(179), "179m"},     {minutes(180), "3h"},
      {minutes(245), "4h5m"},      {hours(8), "8h"},           {hours(47), "47h"},
      {hours(48), "2d"},           {hours(51), "2d3h"},        {hours(24 * 40), "40d"},
      {hours(24 * 365 * 2), "2y"}, {hours(24 * 800), "2y70d"}, {hours(24 * 365 * 9), "9y"},
  };
  for (const Row& row : rows) EXPECT_EQ(format_age(row.age), row.text);
}

}  // namespace
}  // namespace grapnel
