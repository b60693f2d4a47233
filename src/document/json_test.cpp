#include "document/json.h"

#include <gtest/gtest.h>

#include <limits>

namespace grapnel {
namespace {

Json parse(std::string_view text) {
  auto value = parse_json(text);
  EXPECT_TRUE(value) << text;
  return value ? *value : Json();
}

TEST(Json, KeepsWhatItReads) {
  const std::string_view texts[] = {
      "null",
      "true",
      R"("a\"b\\c\n\u0001é")",
      "[]",
      "{}",
      R"({"b":1,"a":[1,2,{"x":null}]})",
      "9223372036854775807",
      "-9223372036854775808",
      "18446744073709551615",
      "1.5",
      "1e+21",
      "1e-7",
      "0.000001",
      "-0.1",
      "1.6283268682757495",
      "242555938.73176622",
      "1.7976931348623157e+308",
      "5e-324",
  };
  for (const std::string_view text : texts) EXPECT_EQ(to_text(parse(text)), text);
}

TEST(Json, WritesNumbersAsGo) {
  EXPECT_EQ(number_text(1), "1");
  EXPECT_EQ(number_text(1e20), "100000000000000000000");
  EXPECT_EQ(number_text(-18446744073709551616.0), "-18446744073709552000");
  EXPECT_EQ(number_text(184467440737095000.0), "184467440737095008");
  EXPECT_EQ(number_text(1.25e22), "1.25e+22");
  EXPECT_EQ(number_text(1e-9), "1e-9");
  EXPECT_EQ(number_text(1e-10), "1e-10");
  EXPECT_EQ(number_text(std::numeric_limits<double>::infinity()), "null");
}

TEST(Json, PrintsPrettyAsKubectl) {
  EXPECT_EQ(to_pretty_text(parse(R"({"kind":"Pod","a":{},"list":[1,{"x":"<&>"}],"none":[]})")),
            R"({
    "a": {},
    "kind": "Pod",
    "list": [
        1,
        {
            "x": "\u003c\u0026\u003e"
        }
    ],
    "none": []
})");
}

TEST(Json, RefusesWhatIsNotOneValue) {
  for (const std::string_view text : {"", " ", "{", "[1,]", "{\"a\":}", "1 2", "nul", "\"\xff\"",
                                      "{a:1}", "'a'", "01", "NaN", "1e400", "-", "1e"}) {
    const auto value = parse_json(text);
    ASSERT_FALSE(value) << text;
    EXPECT_EQ(value.error().reason, Reason::kDecode);
  }
  EXPECT_TRUE(parse_json(std::string(99, '[') + std::string(99, ']')));
  EXPECT_FALSE(parse_json(std::string(101, '[') + std::string(101, ']')));
  EXPECT_FALSE(parse_json(std::string(1'000'000, '[')));
}

TEST(Json, FindsByPath) {
  const Json pod = parse(R"({"metadata":{"labels":{"app":"ray"},"generation":3.0},"on":true})");
  EXPECT_EQ(string_or(at(pod, "metadata", "labels", "app")), "ray");
  EXPECT_EQ(at(pod, "metadata", "annotations", "app"), nullptr);
  EXPECT_EQ(at(pod, "on", "x"), nullptr);
  EXPECT_EQ(string_or(at(pod, "on"), "no"), "no");
  EXPECT_EQ(int_or(at(pod, "metadata", "generation")), 3);
  EXPECT_EQ(int_or(at(pod, "on"), 7), 7);
  EXPECT_TRUE(bool_or(at(pod, "on")));
  EXPECT_FALSE(bool_or(nullptr));
}

TEST(Json, EnsuresAnObject) {
  JsonObject root;
  ensure_object(ensure_object(root, "a"), "b")["c"] = 1;
  root["x"] = 5;
  ensure_object(root, "x")["y"] = 2;
  ensure_object(root, "a")["d"] = 3;
  EXPECT_EQ(to_text(root), R"({"a":{"b":{"c":1},"d":3},"x":{"y":2}})");
}

TEST(Json, EqualAsKubernetesMeansIt) {
  struct Row {
    std::string_view a, b;
    bool equal;
  };
  const Row rows[] = {
      {R"({"a":1,"b":2})", R"({"b":2,"a":1})", true},
      {"1", "1.0", true},
      {"1", "1.5", false},
      {"9007199254740993", "9007199254740992.0", false},
      {"18446744073709551615", "18446744073709551615.0", true},
      {"18446744073709551615", "-1", false},
      {"[1,2]", "[2,1]", false},
      {"[1,2]", "[1,2.0]", true},
      {R"({"a":null})", "{}", false},
      {R"("1")", "1", false},
      {"null", "false", false},
  };
  for (const Row& row : rows) {
    EXPECT_EQ(equal(parse(row.a), parse(row.b)), row.equal) << row.a << " " << row.b;
    EXPECT_EQ(equal(parse(row.b), parse(row.a)), row.equal) << row.b << " " << row.a;
  }
}

}  // namespace
}  // namespace grapnel
