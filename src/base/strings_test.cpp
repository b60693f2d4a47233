#include "base/strings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>

namespace grapnel {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST(Strings, Splits) {
  EXPECT_THAT(split("a,b,,c", ','), ElementsAre("a", "b", "", "c"));
  EXPECT_THAT(split("", ','), ElementsAre(""));
  EXPECT_THAT(split(",", ','), ElementsAre("", ""));
}

TEST(Strings, JoinsTrimsAndLowers) {
  const std::vector<std::string> parts = {"a", "b", "c"};
  EXPECT_EQ(join(parts, ", "), "a, b, c");
  EXPECT_EQ(join({}, ", "), "");
  EXPECT_EQ(trim(" \t\n a b \r\v\f"), "a b");
  EXPECT_EQ(trim("   "), "");
  EXPECT_EQ(to_lower("Worker-É1"), "worker-É1");
}

TEST(Strings, SuggestsTheNearestWord) {
  const std::vector<std::string_view> words = {"worker", "coordinator", "head"};
  EXPECT_EQ(nearest("Worker", words), "worker");
  EXPECT_EQ(nearest("workers", words), "worker");
  EXPECT_EQ(nearest("cordinator", words), "coordinator");
  EXPECT_EQ(nearest("haed", words), "head");
  EXPECT_EQ(nearest("WORKER", words), "worker");
  EXPECT_EQ(nearest("hea", words), "head");
  EXPECT_EQ(nearest("launcher", words), "");
  EXPECT_EQ(nearest(std::string(100'000, 'x'), words), "");
}

TEST(Strings, ChecksNames) {
  const std::string long63(63, 'a');
  const std::string long64(64, 'a');
  const std::string long254(254, 'a');
  struct Row {
    std::string text;
    bool label, subdomain, label1035, value, qualified;
  };
  const Row rows[] = {
      {"my-name", true, true, true, true, true},
      {"123-abc", true, true, false, true, true},
      {"a.b", false, true, false, true, true},
      {"a..b", false, false, false, true, true},
      {"MyName", false, false, false, true, true},
      {"my_name", false, false, false, true, true},
      {"-a", false, false, false, false, false},
      {"a-", false, false, false, false, false},
      {"", false, false, false, true, false},
      {long63, true, true, true, true, true},
      {long64, false, true, false, false, false},
      {long254, false, false, false, false, false},
      {"example.com/name", false, false, false, false, true},
      {"/name", false, false, false, false, false},
      {"a/", false, false, false, false, false},
      {"a/b/c", false, false, false, false, false},
      {"Example/name", false, false, false, false, false},
      {"a\nb", false, false, false, false, false},
  };
  for (const Row& row : rows) {
    EXPECT_EQ(why_not_dns1123_label(row.text).empty(), row.label) << row.text;
    EXPECT_EQ(why_not_dns1123_subdomain(row.text).empty(), row.subdomain) << row.text;
    EXPECT_EQ(why_not_dns1035_label(row.text).empty(), row.label1035) << row.text;
    EXPECT_EQ(why_not_label_value(row.text).empty(), row.value) << row.text;
    EXPECT_EQ(why_not_qualified_name(row.text).empty(), row.qualified) << row.text;
  }
}

TEST(Strings, SaysWhatIsWrongInKubernetesWords) {
  EXPECT_EQ(why_not_dns1123_label("A"),
            "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', "
            "and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', "
            "regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')");
  EXPECT_EQ(why_not_dns1123_label(std::string(64, 'a')), "must be no more than 63 characters");
  EXPECT_THAT(why_not_qualified_name("A_/x"), HasSubstr("prefix part a lowercase RFC 1123"));
  EXPECT_EQ(why_not_qualified_name("a/"), "name part must be non-empty");
}

TEST(Strings, Base64) {
  struct Row {
    std::string_view bytes, text;
  };
  const Row rows[] = {
      {"", ""}, {"f", "Zg=="}, {"fo", "Zm8="}, {"foo", "Zm9v"}, {"\xff\xfe", "//4="}};
  for (const Row& row : rows) {
    EXPECT_EQ(base64_encode(row.bytes), row.text);
    EXPECT_EQ(base64_decode(row.text), row.bytes);
  }
  EXPECT_EQ(base64_decode("Zm9v\nZg=="), "foof");
  for (const std::string_view bad :
       {"Z", "Zg", "Zg=", "Zg===", "=", "====", "Zg==Zg==", "Z-==", "Z=g="}) {
    EXPECT_FALSE(base64_decode(bad)) << bad;
  }
  EXPECT_TRUE(rc::check(
      [](const std::string& bytes) { RC_ASSERT(base64_decode(base64_encode(bytes)) == bytes); }));
}

TEST(Strings, PercentEncoding) {
  EXPECT_EQ(percent_encode("app in (a,b)"), "app%20in%20%28a%2Cb%29");
  EXPECT_EQ(percent_encode("a-b_c.d~e/é"), "a-b_c.d~e%2F%C3%A9");
  EXPECT_EQ(percent_decode("a%2fb%2Fc%20+%"), "a/b/c +%");
  EXPECT_EQ(percent_decode("%zz%4"), "%zz%4");
  EXPECT_TRUE(rc::check(
      [](const std::string& text) { RC_ASSERT(percent_decode(percent_encode(text)) == text); }));
}

}  // namespace
}  // namespace grapnel
