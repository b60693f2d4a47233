// The logs that a shim writes, seen from outside.
#include <gmock/gmock.h>

#include "local/node/node_fixture_test.h"

namespace grapnel::local {
namespace {

std::vector<std::string> lines_of(const std::string& path) {
  std::ifstream file(path);
  std::vector<std::string> lines;
  for (std::string line; std::getline(file, line);) lines.push_back(line);
  return lines;
}

std::string text_of(const std::string& line) {
  const size_t at = line.find("std");
  return at == std::string::npos ? line : line.substr(line.find(' ', at) + 1);
}

TEST_F(NodeTest, ALongLineIsCutAndMarkedAsGoingOn) {
  run_script("long", "head -c 40000 /dev/zero | tr '\\0' x; echo; printf 'no newline'");
  const auto lines = lines_of(log_path("long"));
  ASSERT_EQ(lines.size(), 4U);
  EXPECT_EQ(text_of(lines[0]), "P " + std::string(16384, 'x'));
  EXPECT_EQ(text_of(lines[1]), "P " + std::string(16384, 'x'));
  EXPECT_EQ(text_of(lines[2]), "F " + std::string(40000 - 2 * 16384, 'x'));
  EXPECT_EQ(text_of(lines[3]), "P no newline");
}

TEST_F(NodeTest, LogsAreRotatedAndNoLineIsLostInBetween) {
  start_pod("talks");
  ContainerSpec spec =
      shell("talks", "i=0; while [ $i -lt 3000 ]; do echo line-$i; i=$((i+1)); done");
  spec.log_max_bytes = 40000;
  spec.log_max_files = 20;
  ASSERT_TRUE(run(runner->start_container("talks", spec)));
  ASSERT_TRUE(run(runner->wait_for_end("talks", "main")));
  std::vector<std::string> all;
  int files = 0;
  for (int i = 20; i >= 0; --i) {
    const auto lines = lines_of(log_path("talks") + (i == 0 ? "" : "." + std::to_string(i)));
    files += lines.empty() ? 0 : 1;
    all.insert(all.end(), lines.begin(), lines.end());
  }
  EXPECT_GE(files, 3);
  ASSERT_EQ(all.size(), 3000U);
  for (size_t i = 0; i < all.size(); ++i) {
    ASSERT_EQ(text_of(all[i]), "F line-" + std::to_string(i));
  }
}

TEST_F(NodeTest, OnlySoManyLogsAreKept) {
  start_pod("talks");
  ContainerSpec spec =
      shell("talks", "i=0; while [ $i -lt 3000 ]; do echo line-$i; i=$((i+1)); done");
  spec.log_max_bytes = 20000;
  spec.log_max_files = 2;
  ASSERT_TRUE(run(runner->start_container("talks", spec)));
  ASSERT_TRUE(run(runner->wait_for_end("talks", "main")));
  EXPECT_FALSE(lines_of(log_path("talks")).empty());
  EXPECT_FALSE(lines_of(log_path("talks") + ".1").empty());
  EXPECT_TRUE(lines_of(log_path("talks") + ".2").empty());
  EXPECT_EQ(text_of(lines_of(log_path("talks")).back()), "F line-2999");
}

TEST_F(NodeTest, TheLastWordsBeforeTheEndAreInTheLog) {
  for (int i = 0; i < 5; ++i) {
    const std::string name = "last-" + std::to_string(i);
    run_script(name, "yes | head -20000; echo the end; kill -9 $$; exit 0");
    EXPECT_EQ(text_of(lines_of(log_path(name)).back()), "F the end");
  }
}

}  // namespace
}  // namespace grapnel::local
