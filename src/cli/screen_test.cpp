#include "cli/screen.h"

#include <gtest/gtest.h>

#include <memory>

namespace grapnel::cli {
namespace {

constexpr std::string_view kTree =
    "Experiment train  Pending (waiting for 2 of 2 pods: 0/1 nodes are available: 1 Insufficient "
    "memory)  jax  3s\n"
    "└─ JobSet train  0/2 processes\n"
    "   └─ Job train-worker-0  2 active, 0 ready, 0 of 2 succeeded\n"
    "      ├─ Pod train-worker-0-0-x8k2f  Pending (0/1 nodes are available: 1 Insufficient "
    "memory)\n"
    "      └─ Pod train-worker-0-1-v7c4d  Pending\n";

TEST(Screen, LinesFitATerminalOf80Columns) {
  EXPECT_EQ(fitted(kTree, {.width = 80, .height = 25}),
            "Experiment train  Pending (waiting for 2 of 2 pods: 0/1 nodes are available: 1 …\n"
            "└─ JobSet train  0/2 processes\n"
            "   └─ Job train-worker-0  2 active, 0 ready, 0 of 2 succeeded\n"
            "      ├─ Pod train-worker-0-0-x8k2f  Pending (0/1 nodes are available: 1 Insuff…\n"
            "      └─ Pod train-worker-0-1-v7c4d  Pending\n");
}

TEST(Screen, AreWholeAt160Columns) {
  EXPECT_EQ(fitted(kTree, {.width = 160, .height = 25}), kTree);
}

TEST(Screen, ATreeThatIsTooLongIsCutAndSaysSo) {
  EXPECT_EQ(fitted("a\nb\nc\nd\n", {.width = 80, .height = 4}), "a\nb\n… and 2 more lines\n");
  EXPECT_EQ(fitted("a\nb\nc\n", {.width = 80, .height = 4}), "a\nb\nc\n");
  EXPECT_EQ(fitted("abc\nb\n", {.width = 0, .height = 0}), "a…\nb\n");
  EXPECT_EQ(fitted("", {.width = 80, .height = 4}), "");
}

std::string drawn(const std::vector<std::string>& pictures, std::optional<TerminalSize> size) {
  char* text = nullptr;
  size_t length = 0;
  std::FILE* out = ::open_memstream(&text, &length);
  Screen screen(out);
  for (const auto& picture : pictures) screen.show(picture, size);
  std::fclose(out);
  std::string result(text, length);
  std::free(text);
  return result;
}

TEST(Screen, DrawsOverWhatItDrewOnATerminal) {
  EXPECT_EQ(drawn({"a\nb\n", "a\nb\n", "c\n"}, TerminalSize{80, 25}), "a\nb\n\x1b[2A\x1b[Jc\n");
}

TEST(Screen, PicturesFollowEachOtherElsewhere) {
  EXPECT_EQ(drawn({"a\nb\n", "a\nb\n", "c\n"}, std::nullopt), "a\nb\n\nc\n");
}

}  // namespace
}  // namespace grapnel::cli
