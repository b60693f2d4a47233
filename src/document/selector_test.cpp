#include "document/selector.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace grapnel {
namespace {

using testing::HasSubstr;

TEST(Selector, ParsesLabels) {
  struct Row {
    std::string_view text;
    std::string_view canonical;
  };
  const Row rows[] = {
      {"", ""},
      {"  ", ""},
      {"app=ray", "app=ray"},
      {"app==ray", "app=ray"},
      {" app = ray , tier != web ", "app=ray,tier!=web"},
      {"tier in (b, a,b)", "tier in (a,b)"},
      {"tier notin(a)", "tier!=a"},
      {"app,!old", "app,!old"},
      {"! old", "!old"},
      {"count>3,count<10", "count>3,count<10"},
      {"a=", "a="},
      {"a=,b", "a=,b"},
      {"a in ()", "a="},
      {"a in (,x)", "a in (,x)"},
      {"in in (in)", "in=in"},
      {"example.com/a=b", "example.com/a=b"},
  };
  for (const Row& row : rows) {
    const auto selector = Selector::parse_labels(row.text);
    ASSERT_TRUE(selector) << row.text << ": " << selector.error().message;
    EXPECT_EQ(selector->text(), row.canonical) << row.text;
    EXPECT_EQ(Selector::parse_labels(row.canonical)->requirements(), selector->requirements());
  }
}

TEST(Selector, RefusesMalformedLabels) {
  for (const std::string_view text :
       {",",      "a,",      "a,,b",   "=a",         "!",         "!=a",   "a b", "a in",
        "a in (", "a in (b", "a in b", "a in (b c)", "a=b c",     "a=(b)", "a>x", "a>",
        "a=b=c",  "-a=b",    "a=-b",   "a/b/c=d",    "a in (b),", "!a=b",  ")",   "a=\xff"}) {
    const auto selector = Selector::parse_labels(text);
    EXPECT_FALSE(selector) << text;
  }
}

TEST(Selector, MatchesLabels) {
  const Json labels = *parse_json(R"({"app":"ray","tier":"a","count":"5","empty":""})");
  struct Row {
    std::string_view text;
    bool matches;
  };
  const Row rows[] = {
      {"", true},
      {"app=ray", true},
      {"app=x", false},
      {"app!=ray", false},
      {"app!=x", true},
      {"missing!=x", true},
      {"missing=x", false},
      {"tier in (a,b)", true},
      {"tier in (b)", false},
      {"tier notin (b)", true},
      {"app", true},
      {"!app", false},
      {"!missing", true},
      {"missing", false},
      {"count>4", true},
      {"count>5", false},
      {"count<6", true},
      {"app>1", false},
      {"missing>1", false},
      {"empty=", true},
      {"missing=", false},
      {"app=ray,tier=a", true},
      {"app=ray,tier=b", false},
  };
  for (const Row& row : rows) {
    EXPECT_EQ(Selector::parse_labels(row.text)->matches(labels.if_object()), row.matches)
        << row.text;
  }
  EXPECT_FALSE(Selector::parse_labels("app")->matches(nullptr));
  EXPECT_TRUE(Selector::parse_labels("!app")->matches(nullptr));
}

TEST(Selector, ParsesAndMatchesFields) {
  const Lookup lookup = [](std::string_view key) -> std::optional<std::string_view> {
    if (key == "metadata.name") return "x";
    if (key == "odd") return "a,b=c\\d";
    return std::nullopt;
  };
  struct Row {
    std::string_view text;
    bool matches;
  };
  const Row rows[] = {
      {"", true},
      {"metadata.name=x", true},
      {"metadata.name==x", true},
      {"metadata.name!=x", false},
      {"metadata.name=x,spec.nodeName=", true},
      {"spec.nodeName!=", false},
      {"spec.nodeName!=n", true},
      {R"(odd=a\,b\=c\\d)", true},
      {",metadata.name=x,", true},
  };
  for (const Row& row : rows) {
    const auto selector = Selector::parse_fields(row.text);
    ASSERT_TRUE(selector) << row.text;
    EXPECT_EQ(selector->matches(lookup), row.matches) << row.text;
    EXPECT_EQ(Selector::parse_fields(selector->text())->requirements(), selector->requirements());
  }
  for (const std::string_view text : {"metadata.name", "=x", "a=b=c", "a=\\x", "a=\\", "a>1"}) {
    EXPECT_FALSE(Selector::parse_fields(text)) << text;
  }
}

TEST(Selector, ReadsALabelSelector) {
  const Json labels = *parse_json(R"({"app":"ray","tier":"a"})");
  struct Row {
    std::string_view selector;
    bool matches;
  };
  const Row rows[] = {
      {"{}", true},
      {"null", false},
      {R"({"matchLabels":{"app":"ray"}})", true},
      {R"({"matchLabels":{"app":"x"}})", false},
      {R"({"matchLabels":null,"matchExpressions":null})", true},
      {R"({"matchExpressions":[{"key":"tier","operator":"In","values":["a","b"]}]})", true},
      {R"({"matchExpressions":[{"key":"tier","operator":"NotIn","values":["a"]}]})", false},
      {R"({"matchExpressions":[{"key":"old","operator":"DoesNotExist"}]})", true},
      {R"({"matchLabels":{"app":"ray"},"matchExpressions":[{"key":"tier","operator":"Exists"}]})",
       true},
  };
  for (const Row& row : rows) {
    const auto selector = Selector::from_label_selector(*parse_json(row.selector));
    ASSERT_TRUE(selector) << row.selector;
    EXPECT_EQ(selector->matches(labels.if_object()), row.matches) << row.selector;
  }
  for (const std::string_view text :
       {"[]", "1", R"({"matchLabels":[]})", R"({"matchLabels":{"a":1}})",
        R"({"matchLabels":{"-":"x"}})", R"({"matchExpressions":{}})", R"({"matchExpressions":[1]})",
        R"({"matchExpressions":[{"key":"a","operator":"Gt","values":["1"]}]})",
        R"({"matchExpressions":[{"key":"a","operator":"In"}]})",
        R"({"matchExpressions":[{"key":"a","operator":"Exists","values":["x"]}]})",
        R"({"matchExpressions":[{"key":"a","operator":"In","values":[1]}]})"}) {
    EXPECT_FALSE(Selector::from_label_selector(*parse_json(text))) << text;
  }
  EXPECT_THAT(Selector::from_label_selector(
                  *parse_json(R"({"matchExpressions":[{"key":"a","operator":"in"}]})"))
                  .error()
                  .message,
              HasSubstr("matchExpressions[0].operator: \"in\""));
}

TEST(Selector, FromAPlainMap) {
  const auto selector = Selector::from_map(parse_json(R"({"b":"2","a":"1"})")->get_object());
  EXPECT_EQ(selector.text(), "a=1,b=2");
  EXPECT_TRUE(Selector::from_map({}).empty());
  EXPECT_FALSE(Selector::nothing().empty());
}

}  // namespace
}  // namespace grapnel
