#include "http/spdy.h"

#include <gtest/gtest.h>

namespace grapnel::http {
namespace {

std::string bytes(std::string_view hex) {
  std::string out;
  for (size_t i = 0; i < hex.size(); i += 2) {
    out += static_cast<char>(std::stoi(std::string(hex.substr(i, 2)), nullptr, 16));
  }
  return out;
}

// Streams 1 and 3 as a client opens them for port 8080, their headers compressed as one stream.
const std::string kError = bytes(
    "800300010000003d0000000100000000000078f9e3c6a7c202253a703a2b294a4dcc851625aca9a0808614cb45e01c"
    "60"
    "61606100a4398b20d198094ade8c0600000000ffff");
const std::string kData = bytes("800300010000001800000003000000000000c2aa19540e2512d60b000000ffff");

TEST(Spdy, StreamsAreOpenedWithHeaders) {
  SpdyReader reader;
  reader.feed(kError + kData);
  const auto first = reader.next();
  ASSERT_TRUE(first && *first) << first.error().message;
  const auto& error = std::get<SpdyOpened>(**first);
  EXPECT_EQ(error.stream, 1U);
  EXPECT_EQ(error.headers, (std::map<std::string, std::string>{
                               {"streamtype", "error"}, {"port", "8080"}, {"requestid", "0"}}));
  const auto second = reader.next();
  ASSERT_TRUE(second && *second);
  EXPECT_EQ(std::get<SpdyOpened>(**second).stream, 3U);
  EXPECT_EQ(std::get<SpdyOpened>(**second).headers.at("streamtype"), "data");
  EXPECT_FALSE(reader.next()->has_value());
}

TEST(Spdy, WhatOneEndOpensTheOtherReads) {
  SpdyWriter writer;
  SpdyReader reader;
  for (uint32_t stream = 1; stream < 9; stream += 2) {
    // Long enough to fill more than one piece of compressed text.
    std::string noise;
    for (uint32_t i = 0; i < 2000; ++i) noise += static_cast<char>('!' + (i * i * stream) % 89);
    const std::map<std::string, std::string> headers{
        {"streamtype", "data"}, {"port", std::to_string(stream)}, {"noise", noise}};
    reader.feed(writer.open(stream, headers));
    const auto frame = reader.next();
    ASSERT_TRUE(frame && *frame);
    EXPECT_EQ(std::get<SpdyOpened>(**frame).stream, stream);
    EXPECT_EQ(std::get<SpdyOpened>(**frame).headers, headers);
  }
  reader.feed(writer.reset(7));
  EXPECT_EQ(std::get<SpdyReset>(**reader.next()).stream, 7U);
}

TEST(Spdy, FramesMayComeByteByByte) {
  SpdyReader reader;
  const std::string all = kError + SpdyWriter().data(3, "hello", true) + SpdyWriter().ping(7);
  std::vector<SpdyFrame> frames;
  for (const char byte : all) {
    reader.feed(std::string_view(&byte, 1));
    const auto frame = reader.next();
    ASSERT_TRUE(frame);
    if (*frame) frames.push_back(**frame);
  }
  ASSERT_EQ(frames.size(), 3U);
  EXPECT_EQ(std::get<SpdyData>(frames[1]).data, "hello");
  EXPECT_TRUE(std::get<SpdyData>(frames[1]).finished);
  EXPECT_EQ(std::get<SpdyPing>(frames[2]).id, 7U);
}

TEST(Spdy, WhatIsOfNoMeaningIsPassedOver) {
  SpdyReader reader;
  reader.feed(bytes("8003000400000004"
                    "00000000") +
              SpdyWriter().reply(1) + SpdyWriter().ping(1));
  const auto frame = reader.next();
  ASSERT_TRUE(frame && *frame);
  EXPECT_TRUE(std::holds_alternative<SpdyPing>(**frame));
}

TEST(Spdy, BrokenFramesAreRefused) {
  const std::pair<const char*, std::string> rows[] = {
      {"another version", bytes("8002000600000004"
                                "00000001")},
      {"a frame that is too long", bytes("0000000100ffffff")},
      {"a ping without a number", bytes("8003000600000002"
                                        "0000")},
      {"headers that do not inflate", bytes("800300010000000e"
                                            "00000001"
                                            "00000000"
                                            "0000"
                                            "deadbeef")},
  };
  for (const auto& [name, text] : rows) {
    SpdyReader reader;
    reader.feed(text);
    EXPECT_FALSE(reader.next()) << name;
  }
}

}  // namespace
}  // namespace grapnel::http
