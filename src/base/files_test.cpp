#include "base/files.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>

namespace grapnel {
namespace {

TEST(Files, ReadsWholeFilesAndSaysWhyNot) {
  const std::string path = fmt::format("{}grapnel_files_{}", testing::TempDir(), ::getpid());
  std::ofstream(path) << std::string(200000, 'x');
  EXPECT_EQ(read_file(path).value().size(), 200000U);
  EXPECT_EQ(read_file(path, 1000).error().message, "longer than 1000 bytes");
  EXPECT_EQ(read_file(path + ".none").error().reason, Reason::kNotFound);
  EXPECT_EQ(read_file(path + ".none").error().message, "no such file or directory");
  EXPECT_EQ(read_file(testing::TempDir()).error().message, "is a directory");
  std::remove(path.c_str());
}

}  // namespace
}  // namespace grapnel
