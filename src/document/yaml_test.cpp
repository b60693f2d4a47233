#include "document/yaml.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/strings.h"
#include "document/json_generator_test.h"

namespace grapnel {
namespace {

using testing::HasSubstr;

// All documents of the text, compact, with | between them; or the error.
std::string read(std::string_view text) {
  const auto documents = parse_yaml(text);
  if (!documents) return documents.error().message;
  std::string result;
  for (const YamlDocument& document : *documents) {
    if (!result.empty()) result += "|";
    result += to_text(document.value);
  }
  return result;
}

struct Row {
  std::string_view yaml, json;
};

TEST(Yaml, ScalarsAsKubectlReadsThem) {
  const Row rows[] = {
      {"on", "true"},
      {"Off", "false"},
      {"yes", "true"},
      {"n", "false"},
      {"Y", "true"},
      {"TRUE", "true"},
      {"yEs", R"("yEs")"},
      {"'on'", R"("on")"},
      {"\"5\"", R"("5")"},
      {"0777", "511"},
      {"0o777", "511"},
      {"0O17", "15"},
      {"08", "8"},
      {"0x1F", "31"},
      {"-0x1f", "-31"},
      {"0b101", "5"},
      {"1_000", "1000"},
      {"+5", "5"},
      {"9223372036854775807", "9223372036854775807"},
      {"18446744073709551615", "18446744073709551615"},
      {"18446744073709551616", "18446744073709552000"},
      {"-9223372036854775808", "-9223372036854775808"},
      {"1.5", "1.5"},
      {"1.0", "1"},
      {"1e3", "1000"},
      {".5", "0.5"},
      {"5.", "5"},
      {".1_5", "0.15"},
      {"._5", R"("._5")"},
      {".5_", R"(".5_")"},
      {"1e-999", "0"},
      {"1e999", R"("1e999")"},
      {"0x", R"("0x")"},
      {"0xg", R"("0xg")"},
      {"-", "[null]"},
      {"+", R"("+")"},
      {".", R"(".")"},
      {"1.2.3", R"("1.2.3")"},
      {"10.0.0.1", R"("10.0.0.1")"},
      {"1:30", R"("1:30")"},
      {"2024-01-02", R"("2024-01-02")"},
      {"2024-01-02T03:04:05Z", R"("2024-01-02T03:04:05Z")"},
      {"500m", R"("500m")"},
      {"!!str 5", R"("5")"},
      {"!!int '5'", "5"},
      {"!!float 5", "5"},
      {"!!bool 'yes'", "true"},
      {"!!binary aGk=", R"("hi")"},
      {"!mine 5", R"("5")"},
      {"! 5", R"("5")"},
      {"|\n  a\n  b\n", R"("a\nb\n")"},
      {">-\n  a\n  b\n", R"("a b")"},
      {R"("a\tb\u00e9\x41")", R"("a\tbéA")"},
  };
  for (const Row& row : rows) EXPECT_EQ(read(row.yaml), row.json) << row.yaml;
}

TEST(Yaml, Structures) {
  const Row rows[] = {
      {"a: 1\nb: [x, {c: d}]\ne:\n- f\n- g: h\n  i:\n",
       R"({"a":1,"b":["x",{"c":"d"}],"e":["f",{"g":"h","i":null}]})"},
      {"a: ~\nb: null\nc:\n", R"({"a":null,"b":null,"c":null})"},
      {R"({"kind": "Pod", "n": [1, 2]})", R"({"kind":"Pod","n":[1,2]})"},
      {"{\"a\":\t1,\n\t\"b\": 2}", R"({"a":1,"b":2})"},
      {"on: 1\n", R"({"true":1})"},
      {"1: a\n1.50: b\n0x10: c\n~: d\n", "line 4, column 1: a key cannot be null"},
      {"1: a\n1.50: b\n0x10: c\n", R"({"1":"a","1.5":"b","16":"c"})"},
      {"---\n# nothing\n---\na: 1\n---\nb: 2\n...\n", R"({"a":1}|{"b":2})"},
      {"", ""},
      {"# only a comment\n", ""},
      {"--- 5\n--- 6", "5|6"},
  };
  for (const Row& row : rows) EXPECT_EQ(read(row.yaml), row.json) << row.yaml;
}

TEST(Yaml, AnchorsAndMergeKeys) {
  const Row rows[] = {
      {"a: &x {p: 1}\nb: *x\n", R"({"a":{"p":1},"b":{"p":1}})"},
      {"a: &x 5\nb: *x\n", R"({"a":5,"b":5})"},
      {"base: &b {p: 1, q: 2}\nc:\n  <<: *b\n  q: 3\n",
       R"({"base":{"p":1,"q":2},"c":{"p":1,"q":3}})"},
      // As kubectl: a merge overrides what stands above it.
      {"base: &b {q: 2}\nc:\n  q: 3\n  <<: *b\n", R"({"base":{"q":2},"c":{"q":2}})"},
      {"x: &x {p: 1}\nz: &z {p: 2, q: 3}\nc:\n  <<: [*x, *z]\n",
       R"({"x":{"p":1},"z":{"p":2,"q":3},"c":{"p":1,"q":3}})"},
      {"c:\n  <<: {p: 1}\n  <<: {q: 2}\n", R"({"c":{"p":1,"q":2}})"},
      {"c:\n  '<<': 1\n", R"({"c":{"<<":1}})"},
      {"a: &k key\n*k : v\n", R"({"a":"key","key":"v"})"},
      {"&k key: *k\n", R"({"key":"key"})"},
      {"a: &x 1\nb: &x 2\nc: *x\n", R"({"a":1,"b":2,"c":2})"},
  };
  for (const Row& row : rows) EXPECT_EQ(read(row.yaml), row.json) << row.yaml;
}

TEST(Yaml, ErrorsSayWhere) {
  const Row rows[] = {
      {"a: 1\na: 2\n", "line 2, column 1: key \"a\" is there twice"},
      {"a:\n  b: 1\n  'b': 2\n", "line 3, column 3: key \"b\" is there twice"},
      {"1: a\n'1': b\n", "line 2, column 1: key \"1\" is there twice"},
      {"base: &b {q: 2}\nc:\n  <<: *b\n  q: 3\n  q: 4\n",
       "line 5, column 3: key \"q\" is there twice"},
      {"a: [1, 2\n", "line 2, column 1: did not find expected ',' or ']'"},
      {"a: b: c\n", "line 1, column 5: mapping values are not allowed"},
      {"a:\n\t- b\n", "line 2, column 1: found character that cannot start any token"},
      {"a: *nope\n", "line 1, column 4: unknown anchor 'nope' referenced"},
      {"--- &x 1\n--- *x\n", "line 2, column 5: unknown anchor 'x'"},
      {"a: &x [*x]\n", "line 1, column 8: anchor 'x' value contains itself"},
      {"a: &x {b: {c: *x}}\n", "anchor 'x' value contains itself"},
      {"a: .inf\n", "line 1, column 4: .inf has no place in JSON"},
      {"a: .nan\n", "line 1, column 4: .nan has no place in JSON"},
      {"a: !!int x\n", "line 1, column 4: cannot decode !!str `x` as a !!int"},
      {"a: !!binary '?'\n", "line 1, column 4: !!binary"},
      {"a: !!binary /w==\n", "line 1, column 4: !!binary"},
      {"? [a]\n: b\n", "line 1, column 3: a mapping or sequence cannot be a key"},
      {"<<: 5\n", "line 1, column 1: map merge requires map"},
      {"a: \"\xff\"\n", "invalid leading UTF-8 octet"},
      {"a: \"\\ud800\"\n", "invalid Unicode character escape code"},
      {"a: \x01\n", "control characters are not allowed"},
      {"%YAML 3.0\n---\na", "incompatible YAML document"},
      {"}", "line 1, column 1: did not find expected node content"},
  };
  for (const Row& row : rows) EXPECT_THAT(read(row.yaml), HasSubstr(row.json)) << row.yaml;
}

TEST(Yaml, BoundsDepthAndExpansion) {
  EXPECT_EQ(read(std::string(100, '[') + std::string(100, ']')).size(), 200U);
  EXPECT_THAT(read(std::string(101, '[') + std::string(101, ']')), HasSubstr("nested deeper"));
  EXPECT_THAT(read(std::string(100'000, '[')), HasSubstr("nested deeper"));
  std::string chain = "a0: &a0 []\n";
  for (int i = 1; i < 200; ++i) chain += fmt::format("a{}: &a{} [*a{}]\n", i, i, i - 1);
  EXPECT_THAT(read(chain), HasSubstr("nested deeper"));
  std::string bomb = "a0: &a0 x\n";
  for (int i = 1; i < 20; ++i) {
    bomb +=
        fmt::format("a{0}: &a{0} [*a{1},*a{1},*a{1},*a{1},*a{1},*a{1},*a{1},*a{1}]\n", i, i - 1);
  }
  EXPECT_THAT(read(bomb), HasSubstr("too large"));
  std::string wide = "a: &a " + std::string(1'000'000, 'x') + "\n";
  for (int i = 0; i < 100; ++i) wide += fmt::format("b{}: *a\n", i);
  EXPECT_THAT(read(wide), HasSubstr("too large"));
}

TEST(Yaml, KnowsWhereFieldsStand) {
  const auto documents =
      parse_yaml("spec:\n  types:\n    Worker:\n      - count: 2\n        x: {z: 1}\n");
  ASSERT_TRUE(documents);
  const Positions& positions = documents->front().positions;
  EXPECT_EQ(positions.find("spec"), (Position{1, 1}));
  EXPECT_EQ(positions.find("spec.types.Worker"), (Position{3, 5}));
  EXPECT_EQ(positions.find("spec.types.Worker[0]"), (Position{4, 9}));
  EXPECT_EQ(positions.find("spec.types.Worker[0].x.z"), (Position{5, 13}));
  EXPECT_EQ(positions.find("spec.types.Worker[0].missing"), (Position{4, 9}));
  EXPECT_EQ(positions.find("spec.types.Worker[7].count"), (Position{3, 5}));
  EXPECT_EQ(positions.find("status"), (Position{1, 1}));
}

TEST(Yaml, PrintsAsKubectl) {
  const Row rows[] = {
      {R"({"kind":"Pod","apiVersion":"v1","spec":{"containers":[{"name":"a","args":["-x"]}]}})",
       "apiVersion: v1\nkind: Pod\nspec:\n  containers:\n  - args:\n    - -x\n    name: a\n"},
      {R"({"a":{},"b":[],"c":null,"d":""})", "a: {}\nb: []\nc: null\nd: \"\"\n"},
      {R"({"a":"yes","b":"5","c":"0777","d":"1e3","e":"null","f":"~","g":"1:30","h":"2024-01-02"})",
       "a: \"yes\"\nb: \"5\"\nc: \"0777\"\nd: \"1e3\"\ne: \"null\"\nf: \"~\"\ng: \"1:30\"\nh: "
       "\"2024-01-02\"\n"},
      {R"({"t":"2024-01-02T03:04:05Z"})", "t: \"2024-01-02T03:04:05Z\"\n"},
      {R"({"on":true,"1":2})", "\"1\": 2\n\"on\": true\n"},
      {R"({"<<":1})", "\"<<\": 1\n"},
      {R"({"item10":1,"item9":2})", "item9: 2\nitem10: 1\n"},
      {R"({"a":"x: y","b":"- x","c":" x","d":"#x","e":"x #y","f":"'"})",
       "a: 'x: y'\nb: '- x'\nc: ' x'\nd: '#x'\ne: 'x #y'\nf: ''''\n"},
      {R"({"a":"l1\nl2\n","b":"l1\nl2","c":"l1\n\n"})",
       "a: |\n  l1\n  l2\nb: |-\n  l1\n  l2\nc: |+\n  l1\n\n"},
      {R"({"a":"tab\there","b":"\u0001"})", "a: \"tab\\there\"\nb: \"\\x01\"\n"},
      {R"({"a":1.5,"b":1234567.5,"c":3.0,"d":1e30})", "a: 1.5\nb: 1.2345675e+06\nc: 3\nd: 1e+30\n"},
      {"\"x\"", "x\n"},
      {"[[1,2],[]]", "- - 1\n  - 2\n- []\n"},
  };
  for (const Row& row : rows) EXPECT_EQ(to_yaml(*parse_json(row.yaml)), row.json) << row.yaml;
}

TEST(Yaml, FoldsLongLinesAsKubectl) {
  const std::string words =
      "0/3 nodes are available: 1 node had untolerated taint, 2 had not enough "
      "memory for this pod. preemption: none";
  EXPECT_EQ(to_yaml(JsonObject{{"message", words}}),
            "message: '0/3 nodes are available: 1 node had untolerated taint, 2 had not enough\n"
            "  memory for this pod. preemption: none'\n");
}

// Texts that have hurt YAML writers: blanks and breaks at either end, indicators, odd characters.
rc::Gen<std::string> odd_text() {
  const auto pieces = rc::gen::container<std::vector<std::string>>(rc::gen::element<std::string>(
      "\n", " ", "a", ":", "-", "#", "\"", "'", "\\", "\t", "\r", "1", "{", "|", ">", "%", "@", "`",
      "&", "*", "!", "?", "~", ",", ".", "\x01", "\x7f", "\u0085", "\u2028", "\u2029", "\ufeff",
      "é", "😀", "---", "...", " #", ": "));
  return rc::gen::map(pieces, [](const std::vector<std::string>& p) { return join(p, ""); });
}

TEST(Yaml, ReadsBackWhatItPrints) {
  EXPECT_TRUE(rc::check([] {
    const Json value = *arbitrary_json({});
    const std::string text = to_yaml(JsonObject{{"v", value}});
    const auto documents = parse_yaml(text);
    RC_LOG() << text;
    RC_ASSERT(documents);
    RC_ASSERT(equal(*find(documents->front().value, "v"), value));
  }));
  EXPECT_TRUE(rc::check([] {
    const std::string odd = *odd_text();
    JsonObject value = {
        {"v", odd}, {"list", {{{"x", odd}, {"y", 1}}, odd, {odd}}}, {"z", {{"w", odd}}}};
    value[odd] = "key";
    const std::string text = to_yaml(value);
    const auto documents = parse_yaml(text);
    RC_LOG() << text;
    if (!documents) RC_LOG() << documents.error().message;
    RC_ASSERT(documents);
    RC_ASSERT(equal(documents->front().value, value));
  }));
}

}  // namespace
}  // namespace grapnel
