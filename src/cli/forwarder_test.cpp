#include "cli/forwarder.h"

#include <gtest/gtest.h>

namespace grapnel::cli {
namespace {

TEST(PortPair, IsLocalAndRemote) {
  EXPECT_EQ(*parse_port_pair("8080:80"), (PortPair{8080, 80}));
  EXPECT_EQ(*parse_port_pair("80"), (PortPair{80, 80}));
  EXPECT_EQ(*parse_port_pair(":80"), (PortPair{0, 80}));
}

TEST(PortPair, AnythingElseIsRefusedWithWhatWasFound) {
  for (const auto* text :
       {"", ":", "80:", "0", "0:80", "65536", "http", "1:2:3", "-1", "8080:http"}) {
    const auto pair = parse_port_pair(text);
    ASSERT_FALSE(pair) << text;
    EXPECT_EQ(pair.error().message.find(fmt::format("'{}'", text)), 0U);
  }
}

}  // namespace
}  // namespace grapnel::cli
