#include "local/node/dns_message.h"

#include <gmock/gmock.h>
#include <rapidcheck.h>

namespace grapnel::local::dns {
namespace {

using testing::SizeIs;

TEST(DnsMessage, AQuestionIsRead) {
  const auto query =
      parse_query(encode_query(7, "Worker-0.Exp.default.svc.cluster.local", Type::kA));
  ASSERT_TRUE(query);
  EXPECT_EQ(query->id, 7);
  EXPECT_EQ(query->name, "worker-0.exp.default.svc.cluster.local");
  EXPECT_EQ(query->type, 1);
  EXPECT_TRUE(query->recursion_desired);
  EXPECT_EQ(query->largest, 512U);
}

TEST(DnsMessage, AnAnswerIsReadBackAndKeepsTheSpelling) {
  const auto query = parse_query(encode_query(9, "A.B", Type::kA));
  const Response response{.answers = {{.name = "a.b", .data = address_data(0x0af40005)},
                                      {.name = "a.b", .ttl = 30, .data = address_data(1)}}};
  const std::string bytes = encode(*query, response, 512);
  EXPECT_NE(bytes.find(std::string("\1A\1B\0", 5)), std::string::npos);
  const auto parsed = parse_response(bytes);
  ASSERT_TRUE(parsed);
  EXPECT_EQ(parsed->id, 9);
  EXPECT_TRUE(parsed->authoritative);
  EXPECT_FALSE(parsed->truncated);
  ASSERT_THAT(parsed->answers, SizeIs(2));
  EXPECT_EQ(parsed->answers[0].data, std::string("\x0a\xf4\x00\x05", 4));
  EXPECT_EQ(parsed->answers[1].ttl, 30U);
}

TEST(DnsMessage, AQuestionDoesNotPointIntoItsHeader) {
  // Our answer, which gives the question back, has another header.
  std::string bytes = encode_query(0x0161, "a", Type::kA);
  bytes.replace(12, 3, std::string("\1a\xc0\0", 4));
  EXPECT_FALSE(parse_query(bytes));
}

TEST(DnsMessage, WhatDoesNotFitIsCutAndMarked) {
  const auto query = parse_query(encode_query(1, "many.svc.cluster.local", Type::kA));
  Response response;
  for (uint32_t i = 0; i < 100; ++i) {
    response.answers.push_back({.name = query->name, .data = address_data(i)});
  }
  const std::string small = encode(*query, response, 512);
  EXPECT_LE(small.size(), 512U);
  const auto cut = parse_response(small);
  ASSERT_TRUE(cut);
  EXPECT_TRUE(cut->truncated);
  EXPECT_GT(cut->answers.size(), 5U);
  const auto whole = parse_response(encode(*query, response, 65535));
  EXPECT_FALSE(whole->truncated);
  EXPECT_THAT(whole->answers, SizeIs(100));
}

TEST(DnsMessage, TheSizeAnAskerCanTakeIsBelievedWithinReason) {
  std::string bytes = encode_query(1, "a.b", Type::kA);
  bytes[11] = 1;                                           // one additional record:
  bytes += std::string("\0\0\x29\x10\0\0\0\0\0\0\0", 11);  // OPT, 4096 bytes
  const auto query = parse_query(bytes);
  ASSERT_TRUE(query);
  EXPECT_TRUE(query->has_options);
  EXPECT_EQ(query->largest, 1232U);
  EXPECT_TRUE(parse_response(encode(*query, {}, query->largest)));
}

TEST(DnsMessage, WhatIsNoQuestionIsNotAnswered) {
  const std::string good = encode_query(1, "a.b", Type::kA);
  EXPECT_FALSE(parse_query(""));
  for (size_t size = 0; size < good.size(); ++size) {
    EXPECT_FALSE(parse_query(std::string_view(good).substr(0, size))) << size;
  }
  std::string answer = good;
  answer[2] = static_cast<char>(0x80);
  EXPECT_FALSE(parse_query(answer));
  std::string two = good;
  two[5] = 2;
  EXPECT_FALSE(parse_query(two));
}

TEST(DnsMessage, NamesThatPointAtThemselvesEnd) {
  std::string loop = encode_query(1, "", Type::kA).substr(0, 12);
  EXPECT_FALSE(parse_query(loop + std::string("\xc0\x0c\0\1\0\1", 6)));
  EXPECT_FALSE(parse_query(loop + std::string("\xc0\x0e\xc0\x0c\0\1\0\1", 8)));
  std::string label(64, 'x');
  EXPECT_FALSE(parse_query(loop + "\x40" + label + std::string("\0\0\1\0\1", 5)));
}

TEST(DnsMessage, AnyBytesAreSafeToRead) {
  EXPECT_TRUE(rc::check([](const std::vector<uint8_t>& noise, uint8_t at, uint8_t value) {
    const std::vector<char> exact(noise.begin(), noise.end());
    const std::string_view bytes(exact.data(), exact.size());
    if (const auto query = parse_query(bytes)) {
      RC_ASSERT(parse_query(bytes)->name.size() <= 255U);
      encode(*query, {}, 512);
    }
    parse_response(bytes);
    // And nearly right ones.
    std::string near = encode_query(1, "a.svc.cluster.local", Type::kSrv);
    near[at % near.size()] = static_cast<char>(value);
    const auto query = parse_query(near);
    if (query) parse_response(encode(*query, {.answers = {{.name = query->name}}}, 512));
  }));
}

}  // namespace
}  // namespace grapnel::local::dns
