#include "document/list_splitter.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "document/json_generator_test.h"
#include "document/line_splitter.h"

namespace grapnel {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

struct Parts {
  std::vector<std::string> items;
  std::string skeleton;  // or the error
};

Parts split_list(const std::vector<std::string_view>& chunks, ListSplitterOptions options = {}) {
  Parts parts;
  ListSplitter splitter(
      [&](std::string_view item) {
        parts.items.emplace_back(item);
        return Result<>();
      },
      options);
  for (const std::string_view chunk : chunks) {
    if (!splitter.feed(chunk)) break;
  }
  const auto skeleton = splitter.finish();
  parts.skeleton = skeleton ? to_text(*skeleton) : skeleton.error().message;
  return parts;
}

TEST(ListSplitter, HandsOutItemsAndKeepsTheRest) {
  const Parts parts = split_list({R"( {"kind":"PodList","metadata":{"resourceVersion":"7",
    "items":[{"not":"ours"}]}, "items" : [ {"a":"}]\"{"} , {"b":[{}]}
    ] ,"x":["items"]} )"});
  EXPECT_THAT(parts.items, ElementsAre(R"({"a":"}]\"{"})", R"({"b":[{}]})"));
  EXPECT_EQ(parts.skeleton, R"({"kind":"PodList","metadata":{"resourceVersion":"7",)"
                            R"("items":[{"not":"ours"}]},"items":[],"x":["items"]})");
}

// Items are scanned a block at a time: strings, brackets and escapes at every place of a block.
TEST(ListSplitter, FindsTheEndsOfItemsAtEveryPlace) {
  for (size_t shift = 0; shift < 130; ++shift) {
    const std::string pad(shift, 'x');
    const std::vector<std::string> items = {
        R"({"k":")" + pad + R"("})", R"({"k":[{"]}":")" + pad + R"([{"}],"l":{}})",
        R"({"k":")" + pad + R"(\\\"}","l":[1,2,[3]]})", R"({")" + pad + R"(":{"a":{"b":{}}}})"};
    std::string list = R"({"items":[)";
    for (const std::string& item : items) list += (item == items.front() ? "" : ",") + item;
    list += "]}";
    EXPECT_EQ(split_list({list}).items, items) << shift;
    for (size_t cut = 0; cut <= list.size(); cut += 7) {
      const std::string_view text = list;
      EXPECT_EQ(split_list({text.substr(0, cut), text.substr(cut)}).items, items) << shift << cut;
    }
  }
}

TEST(ListSplitter, TakesListsWithoutItems) {
  EXPECT_EQ(split_list({"{}"}).skeleton, "{}");
  EXPECT_EQ(split_list({R"({"items":[]})"}).skeleton, R"({"items":[]})");
  EXPECT_EQ(split_list({R"({"items":null,"kind":"x"})"}).skeleton, R"({"items":null,"kind":"x"})");
  EXPECT_EQ(split_list({R"({"items":"[{}]"})"}).skeleton, R"({"items":"[{}]"})");
  EXPECT_EQ(split_list({R"({"kind":"items"})"}).skeleton, R"({"kind":"items"})");
}

TEST(ListSplitter, RefusesWhatIsNoList) {
  struct Row {
    std::string_view text, error;
  };
  const Row rows[] = {
      {"", "ends early, after 0 bytes"},
      {"[]", "byte 0 of the list: unexpected '['"},
      {R"({"items":[)", "ends early"},
      {R"({"items":[{"a":1)", "ends early"},
      {R"({"items":[{}])", "ends early"},
      {R"({"items":[{},]})", "unexpected ']'"},
      {R"({"items":[{}{}]})", "unexpected '{'"},
      {R"({"items":[,{}]})", "unexpected ','"},
      {R"({"items":[1]})", "unexpected '1'"},
      {R"({"items":[null]})", "unexpected 'n'"},
      {R"({"items":[]}})", "unexpected '}'"},
      {R"({"items":[],"items":[]})", "items twice"},
      {"{\"items\":[\x01]}", "unexpected 0x01"},
      {R"({"kind"})", "invalid JSON"},
      {R"({])", "invalid JSON"},
      {R"({"a":1]})", "unexpected '}'"},
  };
  for (const Row& row : rows) {
    EXPECT_THAT(split_list({row.text}).skeleton, HasSubstr(row.error)) << row.text;
  }
}

TEST(ListSplitter, BoundsWhatItHolds) {
  const std::string long_text(2000, 'x');
  const ListSplitterOptions options{.max_item = 1000, .max_skeleton = 1000};
  EXPECT_THAT(split_list({R"({"items":[{"a":")", long_text}, options).skeleton,
              HasSubstr("larger than 1000 bytes"));
  EXPECT_THAT(split_list({R"({"kind":")", long_text}, options).skeleton,
              HasSubstr("more than 1000 bytes outside"));
}

TEST(ListSplitter, StopsAtAnErrorOfTheReader) {
  int calls = 0;
  ListSplitter splitter([&](std::string_view) -> Result<> {
    ++calls;
    return fail(Reason::kDecode, "not a pod");
  });
  EXPECT_EQ(splitter.feed(R"({"items":[{},{}]})").error().message, "not a pod");
  EXPECT_EQ(splitter.feed("]}").error().message, "not a pod");
  EXPECT_EQ(splitter.finish().error().message, "not a pod");
  EXPECT_EQ(calls, 1);
}

std::vector<std::string_view> cut_anywhere(std::string_view text) {
  std::vector<std::string_view> chunks;
  while (!text.empty()) {
    const size_t size = *rc::gen::inRange<size_t>(1, std::min<size_t>(text.size(), 20) + 1);
    chunks.push_back(text.substr(0, size));
    text.remove_prefix(size);
  }
  return chunks;
}

TEST(ListSplitter, ResultDoesNotDependOnChunks) {
  EXPECT_TRUE(rc::check([] {
    JsonObject list = {{"kind", "List"}, {"metadata", *arbitrary_json({})}};
    JsonArray items;
    const int count = *rc::gen::inRange(0, 5);
    for (int i = 0; i < count; ++i) items.push_back({{"x", *arbitrary_json({})}, {"s", "]}\\\""}});
    list["items"] = items;
    list["after"] = *arbitrary_json({});
    const std::string text = *rc::gen::arbitrary<bool>() ? to_text(list) : to_pretty_text(list);
    const Parts parts = split_list(cut_anywhere(text));
    RC_ASSERT(parts.items.size() == items.size());
    for (size_t i = 0; i < items.size(); ++i) {
      RC_ASSERT(equal(*parse_json(parts.items[i]), items[i]));
    }
    list["items"] = JsonArray();
    RC_ASSERT(equal(*parse_json(parts.skeleton), list));
  }));
}

TEST(LineSplitter, LinesDoNotDependOnChunks) {
  const std::string text = "{\"a\":1}\n\n{\"b\":2}\r\nlast\n";
  EXPECT_TRUE(rc::check([&] {
    LineSplitter splitter;
    std::vector<std::string> lines;
    for (const std::string_view chunk : cut_anywhere(text)) {
      RC_ASSERT(splitter.feed(chunk, [&](std::string_view line) {
        lines.emplace_back(line);
        return Result<>();
      }));
    }
    RC_ASSERT(splitter.finish());
    RC_ASSERT(lines == (std::vector<std::string>{"{\"a\":1}", "{\"b\":2}", "last"}));
  }));
}

TEST(LineSplitter, RefusesLongAndCutLines) {
  const auto ignore = [](std::string_view) { return Result<>(); };
  LineSplitter splitter(10);
  EXPECT_TRUE(splitter.feed("0123456789\n", ignore));
  EXPECT_TRUE(splitter.feed("01234", ignore));
  EXPECT_THAT(splitter.finish().error().message, HasSubstr("within a line, after 5 bytes"));
  EXPECT_THAT(splitter.feed("567890", ignore).error().message, HasSubstr("longer than 10 bytes"));
}

TEST(LineSplitter, PassesOnAnErrorOfTheReader) {
  LineSplitter splitter;
  const auto result = splitter.feed("a\nb\n", [](std::string_view line) -> Result<> {
    return fail(Reason::kDecode, "bad {}", line);
  });
  EXPECT_EQ(result.error().message, "bad a");
}

}  // namespace
}  // namespace grapnel
