#include <gtest/gtest.h>

#include "document/json_generator_test.h"
#include "document/patch.h"

namespace grapnel {
namespace {

TEST(MergePatch, Rfc7386Examples) {
  struct Row {
    std::string_view target, patch, result;
  };
  const Row rows[] = {
      {R"({"a":"b"})", R"({"a":"c"})", R"({"a":"c"})"},
      {R"({"a":"b"})", R"({"b":"c"})", R"({"a":"b","b":"c"})"},
      {R"({"a":"b"})", R"({"a":null})", R"({})"},
      {R"({"a":"b","b":"c"})", R"({"a":null})", R"({"b":"c"})"},
      {R"({"a":["b"]})", R"({"a":"c"})", R"({"a":"c"})"},
      {R"({"a":"c"})", R"({"a":["b"]})", R"({"a":["b"]})"},
      {R"({"a":{"b":"c"}})", R"({"a":{"b":"d","c":null}})", R"({"a":{"b":"d"}})"},
      {R"({"a":[{"b":"c"}]})", R"({"a":[1]})", R"({"a":[1]})"},
      {R"(["a","b"])", R"(["c","d"])", R"(["c","d"])"},
      {R"({"a":"b"})", R"(["c"])", R"(["c"])"},
      {R"({"a":"foo"})", R"(null)", R"(null)"},
      {R"({"a":"foo"})", R"("bar")", R"("bar")"},
      {R"({"e":null})", R"({"a":1})", R"({"e":null,"a":1})"},
      {R"([1,2])", R"({"a":"b","c":null})", R"({"a":"b"})"},
      {R"({})", R"({"a":{"bb":{"ccc":null}}})", R"({"a":{"bb":{}}})"},
  };
  for (const Row& row : rows) {
    Json target = *parse_json(row.target);
    apply_merge_patch(target, *parse_json(row.patch));
    EXPECT_EQ(to_text(target), row.result) << row.target << " + " << row.patch;
  }
}

TEST(MergePatch, BetweenIsTheSmallest) {
  struct Row {
    std::string_view before, after, patch;  // "" when there is none
  };
  const Row rows[] = {
      {R"({"a":1,"b":{"c":2,"d":3}})", R"({"a":1,"b":{"c":2,"d":4}})", R"({"b":{"d":4}})"},
      {R"({"a":1})", R"({})", R"({"a":null})"},
      {R"({})", R"({"a":{}})", R"({"a":{}})"},
      {R"({"a":{"b":1}})", R"({"a":{}})", R"({"a":{"b":null}})"},
      {R"({"a":{"b":1}})", R"({"a":5})", R"({"a":5})"},
      {R"({"a":5})", R"({"a":{"b":1}})", R"({"a":{"b":1}})"},
      {R"({"a":[1,2]})", R"({"a":[1]})", R"({"a":[1]})"},
      {R"({"a":1,"b":2})", R"({"b":2.0,"a":1})", ""},
      {R"({})", R"({"a":null})", ""},
      {R"([1])", R"([1])", ""},
      {R"([1])", R"([2])", "[2]"},
  };
  for (const Row& row : rows) {
    const auto patch = merge_patch_between(*parse_json(row.before), *parse_json(row.after));
    EXPECT_EQ(patch ? to_text(*patch) : "", row.patch) << row.before << " -> " << row.after;
  }
}

TEST(MergePatch, BetweenRoundTrips) {
  EXPECT_TRUE(rc::check([] {
    const Json before = *arbitrary_json({.nulls = false});
    const Json after = *arbitrary_json({.nulls = false});
    Json target = before;
    if (const auto patch = merge_patch_between(before, after)) apply_merge_patch(target, *patch);
    RC_ASSERT(equal(target, after));
    RC_ASSERT(!merge_patch_between(after, after));
  }));
}

}  // namespace
}  // namespace grapnel
