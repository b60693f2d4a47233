#include "cli/copy_path.h"

#include <gtest/gtest.h>

namespace grapnel::cli {
namespace {

TEST(CopyPath, ANameAndAColonComeBeforeAPathInAProcess) {
  EXPECT_EQ(parse_copy_path("train:/out/model"), (CopyPath{"train", "/out/model"}));
  EXPECT_EQ(parse_copy_path("train:out"), (CopyPath{"train", "out"}));
  EXPECT_EQ(parse_copy_path("train:a:b"), (CopyPath{"train", "a:b"}));
  EXPECT_EQ(parse_copy_path("here"), (CopyPath{"", "here"}));
  EXPECT_EQ(parse_copy_path("./a:b"), (CopyPath{"", "./a:b"}));
  EXPECT_EQ(parse_copy_path("/a:b"), (CopyPath{"", "/a:b"}));
  EXPECT_EQ(parse_copy_path(":b"), (CopyPath{"", ":b"}));
}

TEST(CopyRoute, LeadsIntoOrOutOfOneExperiment) {
  EXPECT_TRUE(parse_copy_route("data", "train:/data")->into_experiment());
  EXPECT_FALSE(parse_copy_route("train:/data", "data")->into_experiment());
  EXPECT_EQ(parse_copy_route("train:/data", "data")->experiment(), "train");
  EXPECT_FALSE(parse_copy_route("a", "b"));
  EXPECT_FALSE(parse_copy_route("a:b", "c:d"));
  EXPECT_FALSE(parse_copy_route("a:", "d"));
  EXPECT_FALSE(parse_copy_route("", "d:e"));
}

TEST(BaseName, IsTheLastPart) {
  for (const auto& [path, expected] : std::vector<std::pair<const char*, const char*>>{
           {"a", "a"}, {"a/b", "b"}, {"/a/b//", "b"}, {"/", ""}, {".", ""}, {"a/..", ""}}) {
    EXPECT_EQ(base_name(path), expected) << path;
  }
}

}  // namespace
}  // namespace grapnel::cli
