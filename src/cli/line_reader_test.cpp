#include "cli/line_reader.h"

#include <gtest/gtest.h>

#include "cli/pieces_test.h"

namespace grapnel::cli {
namespace {

std::vector<std::string> lines(std::vector<std::string> pieces) {
  boost::asio::io_context loop;
  LineReader reader(std::make_unique<Pieces>(std::move(pieces)));
  std::vector<std::string> out;
  auto reading = spawn(loop.get_executor(), [](LineReader& r, auto& o) -> Task<> {
    for (;;) {
      const auto line = co_await r.next();
      if (!line || !*line) co_return;
      o.push_back(**line);
    }
  }(reader, out));
  loop.run();
  return out;
}

TEST(LineReader, CutsPiecesIntoLines) {
  using Lines = std::vector<std::string>;
  EXPECT_EQ(lines({}), Lines{});
  EXPECT_EQ(lines({"a\nb\n"}), (Lines{"a", "b"}));
  EXPECT_EQ(lines({"a", "b", "\n", "c\nd"}), (Lines{"ab", "c", "d"}));
  EXPECT_EQ(lines({"\n\na\n"}), (Lines{"", "", "a"}));
  EXPECT_EQ(lines({"a\r\n"}), (Lines{"a\r"}));
}

}  // namespace
}  // namespace grapnel::cli
