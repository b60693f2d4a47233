#include "cli/log_position.h"

#include <gtest/gtest.h>

#include <vector>

namespace grapnel::cli {
namespace {

using Lines = std::vector<std::string>;

// What is printed of a log that is read in several goes.
Lines printed(const std::vector<Lines>& goes) {
  LogPosition position;
  Lines out;
  for (const Lines& go : goes) {
    position.reopen();
    for (const auto& line : go) {
      if (const auto text = position.take(line)) out.emplace_back(*text);
    }
  }
  return out;
}

TEST(LogPosition, TakesTheTimeAway) {
  EXPECT_EQ(
      printed({{"2026-05-04T10:00:01Z a b", "2026-05-04T10:00:02.5Z ", "2026-05-04T10:00:03Z"}}),
      (Lines{"a b", "", ""}));
}

TEST(LogPosition, PrintsEachLineOnce) {
  EXPECT_EQ(printed({{"2026-05-04T10:00:01.1Z a", "2026-05-04T10:00:01.12Z b"},
                     {"2026-05-04T10:00:01.1Z a", "2026-05-04T10:00:01.12Z b",
                      "2026-05-04T10:00:01.2Z c"}}),
            (Lines{"a", "b", "c"}));
}

TEST(LogPosition, LinesOfOneTimeAreCounted) {
  EXPECT_EQ(printed({{"2026-05-04T10:00:01Z a", "2026-05-04T10:00:01Z a"},
                     {"2026-05-04T10:00:01Z a", "2026-05-04T10:00:01Z a", "2026-05-04T10:00:01Z a"},
                     {"2026-05-04T10:00:01Z a", "2026-05-04T10:00:01Z a", "2026-05-04T10:00:01Z a",
                      "2026-05-04T10:00:01Z b"}}),
            (Lines{"a", "a", "a", "b"}));
}

TEST(LogPosition, TheServerMayBeginLater) {
  EXPECT_EQ(printed({{"2026-05-04T10:00:01Z a", "2026-05-04T10:00:05Z b"},
                     {"2026-05-04T10:00:05Z b", "2026-05-04T10:00:06Z c"},
                     {},
                     {"2026-05-04T10:00:07Z d"}}),
            (Lines{"a", "b", "c", "d"}));
}

TEST(LogPosition, ALineWithoutATimeIsPrintedAsItIs) {
  EXPECT_EQ(printed({{"unable to retrieve container logs", "x"}}),
            (Lines{"unable to retrieve container logs", "x"}));
}

TEST(LogPosition, KnowsWhereToGoOn) {
  LogPosition position;
  EXPECT_EQ(position.since(), std::nullopt);
  position.take("2026-05-04T10:00:01.5Z a");
  EXPECT_EQ(position.since(), parse_time("2026-05-04T10:00:01.5Z"));
  position.take("garbage");
  EXPECT_EQ(position.since(), parse_time("2026-05-04T10:00:01.5Z"));
}

}  // namespace
}  // namespace grapnel::cli
