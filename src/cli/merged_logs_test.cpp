#include "cli/merged_logs.h"

#include <gtest/gtest.h>

#include "cli/pieces_test.h"

namespace grapnel::cli {
namespace {

std::vector<std::string> merged(std::vector<std::vector<std::string>> logs) {
  boost::asio::io_context loop;
  MergedLogs all;
  for (size_t i = 0; i < logs.size(); ++i) {
    all.add({.name = fmt::format("worker-{}", i), .rank = static_cast<int>(i)},
            std::make_unique<Pieces>(logs[i]));
  }
  std::vector<std::string> out;
  const auto reading =
      spawn(loop.get_executor(), [](MergedLogs& m, std::vector<std::string>& o) -> Task<> {
        for (;;) {
          const auto line = co_await m.next();
          if (!line || !*line) co_return;
          o.push_back((*line)->source.name + ": " + (*line)->text);
        }
      }(all, out));
  loop.run();
  return out;
}

using Lines = std::vector<std::string>;

TEST(MergedLogs, AreInTheOrderOfTheirTimes) {
  EXPECT_EQ(
      merged({{"2026-05-04T10:00:01Z a\n2026-05-04T10:00:03Z c\n"}, {"2026-05-04T10:00:02Z b\n"}}),
      (Lines{"worker-0: a", "worker-1: b", "worker-0: c"}));
}

TEST(MergedLogs, LinesMayComeInPiecesAndWithoutAnEnd) {
  EXPECT_EQ(merged({{"2026-05-04T10:00:01Z he", "llo\n2026-05-04T10:00:", "02Z end"}, {}}),
            (Lines{"worker-0: hello", "worker-0: end"}));
}

TEST(MergedLogs, FractionsOfSecondsAreComparedByValue) {
  EXPECT_EQ(merged({{"2026-05-04T10:00:01.12Z b\n"},
                    {"2026-05-04T10:00:01.1Z a\n2026-05-04T10:00:01.2Z c\n"}}),
            (Lines{"worker-1: a", "worker-0: b", "worker-1: c"}));
}

TEST(MergedLogs, ALineMayBeEmpty) {
  EXPECT_EQ(merged({{"2026-05-04T10:00:01Z \n2026-05-04T10:00:02Z x\n"}}),
            (Lines{"worker-0: ", "worker-0: x"}));
}

}  // namespace
}  // namespace grapnel::cli
