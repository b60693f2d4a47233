#include "http/certificates.h"

#include <gmock/gmock.h>

namespace grapnel::http {
namespace {

const Time kNow = Time(seconds(1'800'000'000));

TEST(Certificates, ExpireWhenTheySay) {
  const auto authority = make_authority(
      {.common_name = "grapnel", .not_before = kNow, .not_after = kNow + hours(24 * 365 * 10)});
  ASSERT_TRUE(authority) << authority.error().message;
  EXPECT_THAT(authority->certificate_pem, testing::StartsWith("-----BEGIN CERTIFICATE-----\n"));
  EXPECT_THAT(authority->key_pem, testing::StartsWith("-----BEGIN PRIVATE KEY-----\n"));
  EXPECT_EQ(certificate_expiry(authority->certificate_pem), kNow + hours(24 * 365 * 10));
  const auto leaf = make_certificate(*authority, {.common_name = "webhook",
                                                  .names = {"a.b.svc", "::1", "10.0.0.1"},
                                                  .not_before = kNow,
                                                  .not_after = kNow + hours(1)});
  ASSERT_TRUE(leaf) << leaf.error().message;
  EXPECT_EQ(certificate_expiry(leaf->certificate_pem), kNow + hours(1));
  EXPECT_NE(leaf->key_pem, authority->key_pem);
}

TEST(Certificates, RefuseWhatCannotStandInOne) {
  const auto authority =
      make_authority({.common_name = "a", .not_before = kNow, .not_after = kNow + hours(1)});
  ASSERT_TRUE(authority);
  EXPECT_FALSE(make_certificate(*authority, {.common_name = "b",
                                             .names = {"x,DNS:evil"},
                                             .not_before = kNow,
                                             .not_after = kNow + hours(1)}));
  EXPECT_FALSE(make_certificate({"garbage", "garbage"}, {.common_name = "b"}));
  EXPECT_FALSE(certificate_expiry("garbage"));
  EXPECT_FALSE(certificate_expiry(""));
  EXPECT_FALSE(certificate_expiry(authority->key_pem));
}

TEST(RandomToken, IsHexadecimalAndNeverTheSame) {
  const auto one = random_token();
  const auto two = random_token();
  ASSERT_TRUE(one && two);
  EXPECT_THAT(*one, testing::MatchesRegex("[0-9a-f]{64}"));
  EXPECT_NE(*one, *two);
  EXPECT_EQ(random_token(3)->size(), 6U);
  EXPECT_EQ(random_token(0), "");
}

}  // namespace
}  // namespace grapnel::http
