#include "http/message.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace grapnel::http {
namespace {

TEST(Headers, NamesCompareWithoutCase) {
  Headers headers{{"Content-Type", "a"}, {"X", "1"}};
  headers.add("x", "2");
  EXPECT_EQ(headers.get("content-type"), "a");
  EXPECT_EQ(headers.get("X"), "1");
  EXPECT_TRUE(headers.has("x"));
  EXPECT_FALSE(headers.has("y"));
  EXPECT_EQ(headers.get("y"), "");
  headers.set("x", "3");
  EXPECT_EQ(headers.get("X"), "3");
  EXPECT_EQ(std::distance(headers.begin(), headers.end()), 2);
}

using Query = std::vector<std::pair<std::string, std::string>>;

struct TargetCase {
  const char* name;
  std::string target;
  std::string path;
  Query query;
};

class TargetTest : public testing::TestWithParam<TargetCase> {};

TEST_P(TargetTest, IsTakenApart) {
  const Target got = parse_target(GetParam().target);
  EXPECT_EQ(got.path, GetParam().path);
  EXPECT_EQ(got.query, GetParam().query);
}

INSTANTIATE_TEST_SUITE_P(
    Table, TargetTest,
    testing::Values(TargetCase{"plain", "/api/v1/pods", "/api/v1/pods", {}},
                    TargetCase{"empty", "", "", {}},
                    TargetCase{"query", "/p?a=1&b=2", "/p", {{"a", "1"}, {"b", "2"}}},
                    TargetCase{"repeated", "/p?c=a&c=b", "/p", {{"c", "a"}, {"c", "b"}}},
                    TargetCase{"no_value", "/p?watch&x=", "/p", {{"watch", ""}, {"x", ""}}},
                    TargetCase{"empty_fields", "/p?&&a=1&", "/p", {{"a", "1"}}},
                    TargetCase{"escapes", "/a%2Fb%20c?k%3D=v%26+w", "/a/b c", {{"k=", "v& w"}}},
                    TargetCase{"plus_in_path", "/a+b", "/a+b", {}},
                    TargetCase{"bad_escapes", "/%zz%4?x=%", "/%zz%4", {{"x", "%"}}},
                    TargetCase{"escape_at_end", "/%41", "/A", {}},
                    TargetCase{"absolute", "http://h:1/p?a=b", "/p", {{"a", "b"}}},
                    TargetCase{"absolute_bare", "http://h", "/", {}},
                    TargetCase{"fragment", "/p?a=b#c", "/p", {{"a", "b"}}},
                    TargetCase{"url_in_query", "/p?u=http://x/y", "/p", {{"u", "http://x/y"}}},
                    TargetCase{"two_questions", "/p?a=b?c", "/p", {{"a", "b?c"}}}),
    [](const auto& info) { return info.param.name; });

TEST(Target, FindsByName) {
  const Target target = parse_target("/?a=1&a=2&b");
  EXPECT_EQ(target.get("a"), "1");
  EXPECT_EQ(target.get("b"), "");
  EXPECT_TRUE(target.has("b"));
  EXPECT_FALSE(target.has("c"));
}

RC_GTEST_PROP(Target, AnyBytesAreTaken, (const std::string& text)) {
  const Target target = parse_target(text);
  RC_ASSERT(target.path.size() <= text.size() + 1);
}

}  // namespace
}  // namespace grapnel::http
