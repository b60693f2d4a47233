#include "cli/commands/operator_endpoints.h"

#include <gtest/gtest.h>

namespace grapnel::cli {
namespace {

TEST(Address, IsHostAndPort) {
  struct Row {
    const char* text;
    std::optional<Address> expected;
  };
  for (const auto& [text, expected] :
       {Row{"127.0.0.1:8080", Address{"127.0.0.1", 8080}}, Row{":8080", Address{"0.0.0.0", 8080}},
        Row{"[::1]:0", Address{"::1", 0}}, Row{"localhost:1", Address{"localhost", 1}},
        Row{"", std::nullopt}, Row{"0", std::nullopt}}) {
    const auto parsed = parse_address(text);
    ASSERT_TRUE(parsed) << text;
    EXPECT_EQ(*parsed, expected) << text;
  }
}

TEST(Address, AnythingElseIsRefusedWithWhatWasFound) {
  for (const auto* text :
       {"8080", "host", "host:", ":", "::1", "::1:80", "host:65536", "host:8x"}) {
    const auto parsed = parse_address(text);
    ASSERT_FALSE(parsed) << text;
    EXPECT_NE(parsed.error().message.find(text), std::string::npos);
  }
}

}  // namespace
}  // namespace grapnel::cli
