#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "document/json_generator_test.h"
#include "document/patch.h"

namespace grapnel {
namespace {

using testing::HasSubstr;

// The patched document, or the error; a failure must leave the target as it was.
std::string patched(std::string_view target_text, std::string_view patch) {
  Json target = *parse_json(target_text);
  const Json before = target;
  const auto result = apply_json_patch(target, *parse_json(patch));
  if (!result) EXPECT_EQ(target, before) << patch;
  return result ? to_text(target) : "error: " + result.error().message;
}

TEST(JsonPatch, Operations) {
  struct Row {
    std::string_view target, patch, result;
  };
  const Row rows[] = {
      {R"({"a":1})", R"([])", R"({"a":1})"},
      {R"({"a":1})", R"([{"op":"add","path":"/b","value":{"c":2}}])", R"({"a":1,"b":{"c":2}})"},
      {R"({"a":1})", R"([{"op":"add","path":"/a","value":2}])", R"({"a":2})"},
      {R"({"l":[1,2]})", R"([{"op":"add","path":"/l/1","value":9}])", R"({"l":[1,9,2]})"},
      {R"({"l":[1,2]})", R"([{"op":"add","path":"/l/2","value":9}])", R"({"l":[1,2,9]})"},
      {R"({"l":[1,2]})", R"([{"op":"add","path":"/l/-","value":9}])", R"({"l":[1,2,9]})"},
      {R"({"a":1})", R"([{"op":"add","path":"","value":[1]}])", "[1]"},
      {R"({"a":1,"b":2})", R"([{"op":"remove","path":"/a"}])", R"({"b":2})"},
      {R"({"l":[1,2,3]})", R"([{"op":"remove","path":"/l/1"}])", R"({"l":[1,3]})"},
      {R"({"a":{"b":1}})", R"([{"op":"replace","path":"/a/b","value":null}])",
       R"({"a":{"b":null}})"},
      {R"({"a":{}})", R"([{"op":"replace","path":"/a/b","value":1}])", R"({"a":{"b":1}})"},
      {R"({"a":{"b":1},"c":{}})", R"([{"op":"move","from":"/a/b","path":"/c/d"}])",
       R"({"a":{},"c":{"d":1}})"},
      {R"({"l":[1,2,3]})", R"([{"op":"move","from":"/l/0","path":"/l/2"}])", R"({"l":[2,3,1]})"},
      {R"({"a":1})", R"([{"op":"move","from":"/a","path":"/a"}])", R"({"a":1})"},
      {R"({"a":[1]})", R"([{"op":"copy","from":"/a","path":"/b"}])", R"({"a":[1],"b":[1]})"},
      {R"({"a":{"b":[1,{"c":2}]}})", R"([{"op":"test","path":"/a/b/1/c","value":2.0}])",
       R"({"a":{"b":[1,{"c":2}]}})"},
      {R"({})", R"([{"op":"test","path":"/a","value":null}])", R"({})"},
      {R"({"a/b":1,"c~d":2,"":3,"~1":4})",
       R"([{"op":"remove","path":"/a~1b"},{"op":"remove","path":"/c~0d"},{"op":"remove","path":"/"},{"op":"remove","path":"/~01"}])",
       R"({})"},
      {R"({"a":1})",
       R"([{"op":"test","path":"/a","value":1},{"op":"add","path":"/b","value":2},{"op":"remove","path":"/a"}])",
       R"({"b":2})"},
  };
  for (const Row& row : rows) EXPECT_EQ(patched(row.target, row.patch), row.result) << row.patch;
}

TEST(JsonPatch, Refusals) {
  struct Row {
    std::string_view patch, error;
  };
  constexpr std::string_view kTarget = R"({"a":{"b":1},"l":[1,2]})";
  const Row rows[] = {
      {R"({})", "must be an array"},
      {R"([1])", "path must be a string"},
      {R"([{"op":"add","path":"/x"}])", "value is missing"},
      {R"([{"op":"frob","path":"/x","value":1}])", "unknown operation \"frob\""},
      {R"([{"op":"add","path":5,"value":1}])", "path must be a string"},
      {R"([{"op":"copy","path":"/x"}])", "from must be a string"},
      {R"([{"op":"add","path":"x","value":1}])", "must start with '/'"},
      {R"([{"op":"add","path":"/~2","value":1}])", "'~' must be ~0 or ~1"},
      {R"([{"op":"add","path":"/~","value":1}])", "'~' must be ~0 or ~1"},
      {R"([{"op":"add","path":"/x/y","value":1}])",
       "operation 0 (add /x/y): the parent is missing"},
      {R"([{"op":"add","path":"/a/b/c","value":1}])", "neither object nor array"},
      {R"([{"op":"add","path":"/l/3","value":1}])", "\"3\" is no index in an array of 2"},
      {R"([{"op":"add","path":"/l/01","value":1}])", "no index"},
      {R"([{"op":"add","path":"/l/-1","value":1}])", "no index"},
      {R"([{"op":"add","path":"/l/1e0","value":1}])", "no index"},
      {R"([{"op":"add","path":"/l/99999999999999999999","value":1}])", "no index"},
      {R"([{"op":"remove","path":"/l/-"}])", "there is nothing"},
      {R"([{"op":"remove","path":"/x"}])", "there is nothing"},
      {R"([{"op":"remove","path":""}])", "whole document"},
      {R"([{"op":"replace","path":"/l/2","value":1}])", "there is nothing"},
      {R"([{"op":"replace","path":"/x/y","value":1}])", "there is nothing"},
      {R"([{"op":"move","from":"/a","path":"/a/b/c"}])", "into itself"},
      {R"([{"op":"move","from":"/x","path":"/y"}])", "there is nothing"},
      {R"([{"op":"copy","from":"/x","path":"/y"}])", "there is nothing"},
      {R"([{"op":"test","path":"/a/b","value":2}])", "the test fails"},
      {R"([{"op":"test","path":"/x","value":2}])", "the test fails"},
      {R"([{"op":"remove","path":"/a"},{"op":"test","path":"/l","value":[2,1]}])",
       "operation 1 (test /l)"},
  };
  for (const Row& row : rows) {
    EXPECT_THAT(patched(kTarget, row.patch), HasSubstr(row.error)) << row.patch;
  }
}

TEST(JsonPatch, BoundsWhatItBuilds) {
  JsonArray doubling;
  for (int i = 0; i < 60; ++i)
    doubling.push_back({{"op", "copy"}, {"from", "/a"}, {"path", "/a/-"}});
  Json target = *parse_json(R"({"a":["x"]})");
  const auto doubled = apply_json_patch(target, doubling);
  ASSERT_FALSE(doubled);
  JsonArray nesting;
  for (int i = 0; i < 200; ++i) {
    nesting.push_back({{"op", "add"}, {"path", "/b"}, {"value", {{"x", 1}}}});
    nesting.push_back({{"op", "move"}, {"from", "/a"}, {"path", "/b/x"}});
    nesting.push_back({{"op", "move"}, {"from", "/b"}, {"path", "/a"}});
  }
  EXPECT_THAT(apply_json_patch(target, nesting).error().message, HasSubstr("deeper than 100"));
  JsonArray many(10'001, {{"op", "test"}, {"path", "/a"}, {"value", {"x"}}});
  EXPECT_TRUE(apply_json_patch(target, many).error().is(Reason::kRequestEntityTooLarge));
  many.resize(10'000);
  EXPECT_TRUE(apply_json_patch(target, many));
  Json wide = JsonObject{{"l", JsonArray(1'000'000, 0)}};
  const JsonArray shifting(10'000, {{"op", "remove"}, {"path", "/l/0"}});
  EXPECT_THAT(apply_json_patch(wide, shifting).error().message, HasSubstr("too much"));
}

}  // namespace
}  // namespace grapnel
