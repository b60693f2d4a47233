#include "local/kubelet/log_reader.h"

#include <gmock/gmock.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace grapnel::local::kubelet {
namespace {

TEST(LogLine, HasStampStreamAndText) {
  const auto line = parse_log_line("2026-01-01T00:00:00.000000001Z stderr P a b ");
  ASSERT_TRUE(line);
  EXPECT_EQ(line->stream, "stderr");
  EXPECT_FALSE(line->is_whole);
  EXPECT_EQ(line->text, "a b ");
  EXPECT_FALSE(parse_log_line(""));
  EXPECT_FALSE(parse_log_line("no log"));
  EXPECT_TRUE(parse_log_line("2026-01-01T00:00:00Z stdout F "));
}

constexpr const char* kLog =
    "2026-01-01T00:00:01Z stdout F one\n"
    "2026-01-01T00:00:02Z stdout P tw\n"
    "2026-01-01T00:00:02Z stdout F o\n"
    "2026-01-01T00:00:03Z stderr F three\n";

std::string formatted(LogFilter filter, size_t piece = 1000) {
  LogFormatter formatter(std::move(filter));
  const std::string_view log = kLog;
  std::string out;
  for (size_t i = 0; i < log.size(); i += piece) out += formatter.add(log.substr(i, piece));
  return out;
}

TEST(LogFormatter, GivesWhatIsAskedFor) {
  EXPECT_EQ(formatted({}), "one\ntwo\nthree\n");
  EXPECT_EQ(formatted({}, 1), "one\ntwo\nthree\n");
  EXPECT_EQ(formatted({.timestamps = true}),
            "2026-01-01T00:00:01Z one\n2026-01-01T00:00:02Z two\n2026-01-01T00:00:03Z three\n");
  EXPECT_EQ(formatted({.since = parse_time("2026-01-01T00:00:02Z")}), "two\nthree\n");
  EXPECT_EQ(formatted({.limit_bytes = 6}), "one\ntw");
  EXPECT_EQ(formatted({.limit_bytes = 4}), "one\n");
}

struct LogFilesTest : testing::Test {
  std::string directory;
  std::string path;
  void SetUp() override {
    char name[] = "/tmp/grapnel-logs-XXXXXX";
    ASSERT_NE(mkdtemp(name), nullptr);
    directory = name;
    path = directory + "/0.log";
  }
  void TearDown() override { std::filesystem::remove_all(directory); }
  void add(const std::string& line) const {
    std::ofstream(path, std::ios::app) << "2026-01-01T00:00:00Z stdout F " << line << "\n";
  }
  void rotate() const {
    for (int i = 8; i >= 1; --i) {
      const std::string from = i == 1 ? path : path + "." + std::to_string(i - 1);
      if (std::filesystem::exists(from)) {
        std::filesystem::rename(from, path + "." + std::to_string(i));
      }
    }
  }
  static std::string rest(LogFiles& files) {
    LogFormatter formatter({});
    std::string out;
    for (std::string bytes = files.read(); !bytes.empty(); bytes = files.read()) {
      out += formatter.add(bytes);
    }
    return out;
  }
};

TEST_F(LogFilesTest, AreReadInOrder) {
  add("1");
  rotate();
  add("2");
  rotate();
  add("3");
  LogFiles files(path, {});
  EXPECT_EQ(rest(files), "1\n2\n3\n");
}

TEST_F(LogFilesTest, BeginAtTheTail) {
  const auto tail = [&](int64_t lines) {
    const LogFilter filter{.tail_lines = lines};
    LogFiles files(path, filter);
    return rest(files);
  };
  EXPECT_EQ(tail(3), "");
  for (int i = 1; i <= 4; ++i) add(std::to_string(i));
  rotate();
  add("5");
  add("6");
  EXPECT_EQ(tail(0), "");
  EXPECT_EQ(tail(1), "6\n");
  EXPECT_EQ(tail(2), "5\n6\n");
  EXPECT_EQ(tail(3), "4\n5\n6\n");
  EXPECT_EQ(tail(6), "1\n2\n3\n4\n5\n6\n");
  EXPECT_EQ(tail(100), "1\n2\n3\n4\n5\n6\n");
}

TEST_F(LogFilesTest, BeginAtTheTailOfALongLog) {
  for (int i = 0; i < 20000; ++i) add(std::to_string(i));
  const LogFilter filter{.tail_lines = 10000};
  LogFiles files(path, filter);
  const std::string text = rest(files);
  EXPECT_TRUE(text.starts_with("10000\n10001\n"));
  EXPECT_TRUE(text.ends_with("19999\n"));
}

TEST_F(LogFilesTest, HaveATail) {
  for (int i = 0; i < 20000; ++i) add(std::to_string(i));
  EXPECT_EQ(log_tail(path, 2, 100), "19998\n19999\n");
  EXPECT_EQ(log_tail(path, 80, 9), "98\n19999\n");
  EXPECT_EQ(log_tail(path + "-none", 80, 9), "");
}

TEST_F(LogFilesTest, AreFollowedAcrossRotations) {
  LogFiles files(path, {});
  EXPECT_EQ(rest(files), "");
  add("1");
  EXPECT_EQ(rest(files), "1\n");
  add("2");
  rotate();
  add("3");
  EXPECT_EQ(rest(files), "2\n3\n");
  rotate();
  add("4");
  rotate();
  add("5");
  EXPECT_EQ(rest(files), "4\n5\n");
  rotate();
  EXPECT_EQ(rest(files), "");
  add("6");
  EXPECT_EQ(rest(files), "6\n");
}

}  // namespace
}  // namespace grapnel::local::kubelet
