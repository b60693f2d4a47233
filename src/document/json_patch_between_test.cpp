#include <gtest/gtest.h>

#include "document/json_generator_test.h"
#include "document/patch.h"

namespace grapnel {
namespace {

std::string between(std::string_view before, std::string_view after) {
  return to_text(json_patch_between(*parse_json(before), *parse_json(after)));
}

TEST(JsonPatchBetween, TouchesOnlyWhatDiffers) {
  EXPECT_EQ(between(R"({"a":1})", R"({"a":1})"), "[]");
  EXPECT_EQ(between(R"({"a":{"b":1,"c":2}})", R"({"a":{"b":1,"c":3}})"),
            R"([{"op":"replace","path":"/a/c","value":3}])");
  EXPECT_EQ(between(R"({"a":1})", R"({"b":1})"),
            R"([{"op":"remove","path":"/a"},{"op":"add","path":"/b","value":1}])");
  EXPECT_EQ(between(R"({"l":[{"x":1},{"x":2}]})", R"({"l":[{"x":1},{"x":3}]})"),
            R"([{"op":"replace","path":"/l/1/x","value":3}])");
  EXPECT_EQ(between(R"({"l":[1]})", R"({"l":[1,2]})"),
            R"([{"op":"replace","path":"/l","value":[1,2]}])");
}

TEST(JsonPatchBetween, EscapesNames) {
  EXPECT_EQ(between(R"({})", R"({"a/b~c":1})"), R"([{"op":"add","path":"/a~1b~0c","value":1}])");
}

TEST(JsonPatchBetween, LeadsFromOneToTheOther) {
  EXPECT_TRUE(rc::check([] {
    const Json before = *arbitrary_json({});
    const Json after = *arbitrary_json({});
    Json patched = before;
    RC_ASSERT(apply_json_patch(patched, json_patch_between(before, after)).has_value());
    RC_ASSERT(equal(patched, after));
  }));
}

}  // namespace
}  // namespace grapnel
