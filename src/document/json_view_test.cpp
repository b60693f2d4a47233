#include "document/json_view.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

namespace grapnel {
namespace {

using testing::ElementsAre;

constexpr std::string_view kText =
    R"({"name":"a\nb","count":3,"part":1.5,"whole":2.0,"big":18446744073709551615,"on":true,)"
    R"("none":null,"list":[1,"x",{"y":[]}],"empty":{}})";

static_assert(sizeof(JsonView) == 2 * sizeof(void*));

// Everything must be the same on a simdjson document and on a Json.
struct JsonViewTest : testing::TestWithParam<bool> {
  JsonParser parser;
  Json json = *parse_json(kText);
  JsonView view = GetParam() ? *parser.parse(kText) : JsonView(json);
  JsonView get(std::string_view key) const { return view.find(key).value(); }
};
INSTANTIATE_TEST_SUITE_P(Json, JsonViewTest, testing::Bool());

TEST_P(JsonViewTest, KnowsTypes) {
  EXPECT_EQ(view.type(), JsonType::kObject);
  EXPECT_EQ(get("name").type(), JsonType::kString);
  EXPECT_EQ(get("count").type(), JsonType::kInt);
  EXPECT_EQ(get("big").type(), JsonType::kInt);
  EXPECT_EQ(get("part").type(), JsonType::kDouble);
  EXPECT_EQ(get("on").type(), JsonType::kBool);
  EXPECT_TRUE(get("none").is_null());
  EXPECT_TRUE(get("list").is_array());
  EXPECT_TRUE(get("empty").is_object());
}

TEST_P(JsonViewTest, ReadsScalars) {
  EXPECT_EQ(get("name").as_string(), "a\nb");
  EXPECT_EQ(get("count").as_string(), std::nullopt);
  EXPECT_EQ(get("count").as_int(), 3);
  EXPECT_EQ(get("count").as_double(), 3.0);
  EXPECT_EQ(get("part").as_int(), std::nullopt);
  EXPECT_EQ(get("part").as_double(), 1.5);
  EXPECT_EQ(get("whole").as_int(), 2);
  EXPECT_EQ(get("big").as_int(), std::nullopt);
  EXPECT_EQ(get("big").as_double(), 18446744073709551615.0);
  EXPECT_EQ(get("on").as_bool(), true);
  EXPECT_EQ(get("on").as_int(), std::nullopt);
  EXPECT_EQ(get("name").as_bool(), std::nullopt);
  EXPECT_EQ(get("name").as_double(), std::nullopt);
}

TEST_P(JsonViewTest, WalksInDocumentOrder) {
  std::vector<std::string> keys;
  view.for_each_member([&](std::string_view key, JsonView) {
    keys.emplace_back(key);
    return key != "part";
  });
  EXPECT_THAT(keys, ElementsAre("name", "count", "part"));
  std::vector<JsonType> types;
  get("list").for_each_element([&](size_t index, JsonView value) {
    EXPECT_EQ(index, types.size());
    types.push_back(value.type());
    return true;
  });
  EXPECT_THAT(types, ElementsAre(JsonType::kInt, JsonType::kString, JsonType::kObject));
  get("name").for_each_element([](size_t, JsonView) { return ADD_FAILURE(), true; });
  get("name").for_each_member([](std::string_view, JsonView) { return ADD_FAILURE(), true; });
}

TEST_P(JsonViewTest, FindsAndCounts) {
  EXPECT_FALSE(view.find("missing"));
  EXPECT_FALSE(get("name").find("x"));
  EXPECT_FALSE(get("list").find("x"));
  EXPECT_EQ(view.size(), 9U);
  EXPECT_EQ(get("list").size(), 3U);
  EXPECT_EQ(get("empty").size(), 0U);
  EXPECT_EQ(get("name").size(), 0U);
}

TEST_P(JsonViewTest, CopiesWhole) {
  EXPECT_EQ(to_text(view.to_json()), to_text(json));
}

TEST(JsonParser, ReusesItsMemoryForDocumentsOfAnySize) {
  JsonParser parser;
  for (const size_t size : {1U, 100'000U, 5U, 3'000'000U, 10U, 10'000'000U, 2U}) {
    const std::string text = '"' + std::string(size, 'x') + '"';
    const auto view = parser.parse(text);
    ASSERT_TRUE(view);
    EXPECT_EQ(view->as_string()->size(), size);
  }
}

TEST(JsonParser, RefusesWhatIsNotOneValue) {
  JsonParser parser;
  for (const std::string_view text : {"", " ", "{", "[1,]", "{\"a\":}", "1 2", "nul", "\"\xff\"",
                                      "{a:1}", "01", "-", "1e", "\""}) {
    const auto view = parser.parse(text);
    ASSERT_FALSE(view) << text;
    EXPECT_EQ(view.error().reason, Reason::kDecode);
  }
  EXPECT_TRUE(parser.parse(std::string(99, '[') + std::string(99, ']')));
  EXPECT_FALSE(parser.parse(std::string(101, '[') + std::string(101, ']')));
  EXPECT_FALSE(parser.parse(std::string(1'000'000, '[')));
  EXPECT_EQ(parser.parse("[7]")->size(), 1U);
}

TEST(JsonParser, TakesIntegersBeyond64Bits) {
  JsonParser parser;
  const auto view = parser.parse(R"({"x":100000000000000000000,"y":1})");
  ASSERT_TRUE(view);
  EXPECT_EQ(view->find("x")->as_double(), 1e20);
  EXPECT_EQ(view->find("y")->as_int(), 1);
}

TEST(JsonParser, CanBeMoved) {
  JsonParser parser;
  const JsonView view = *parser.parse("[1,2]");
  const JsonParser other = std::move(parser);
  EXPECT_EQ(view.size(), 2U);
}

}  // namespace
}  // namespace grapnel
