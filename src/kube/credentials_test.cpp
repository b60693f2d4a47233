#include "kube/credentials.h"

#include <gmock/gmock.h>

#include <fstream>

#include "kube/fake_test.h"

namespace grapnel::kube {
namespace {

using testing::HasSubstr;

struct CredentialsTest : LoopTest {
  ManualClock clock;
  std::string path = unique_folder().string() + ".token";
  ~CredentialsTest() override { std::remove(path.c_str()); }

  void write(std::string_view text) { std::ofstream(path, std::ios::trunc) << text; }
  Result<std::string> header(Credentials& credentials) {
    return run([](Credentials& c) -> Task<Result<std::string>> {
      http::Request request;
      if (auto done = co_await c.authorize(request); !done) co_return fail(done.error());
      co_return std::string(request.headers.get("Authorization"));
    }(credentials));
  }
};

TEST_F(CredentialsTest, HeadersThatNeverChange) {
  const auto credentials =
      make_credentials({{"Authorization", "Bearer x"}, {"Impersonate-User", "u"}}, nullptr);
  EXPECT_EQ(header(*credentials).value(), "Bearer x");
  EXPECT_FALSE(credentials->renew("Bearer x"));
}

TEST_F(CredentialsTest, ATokenFileIsReadAgainEachMinute) {
  write("one\n");
  const auto credentials = make_credentials({}, token_from_file(path, clock));
  EXPECT_EQ(header(*credentials).value(), "Bearer one");
  write("two");
  clock.advance(seconds(59));
  EXPECT_EQ(header(*credentials).value(), "Bearer one");
  clock.advance(seconds(1));
  EXPECT_EQ(header(*credentials).value(), "Bearer two");
}

TEST_F(CredentialsTest, ARefusedTokenIsReadAgainAtOnce) {
  write("one");
  const auto credentials = make_credentials({}, token_from_file(path, clock));
  EXPECT_EQ(header(*credentials).value(), "Bearer one");
  EXPECT_FALSE(credentials->renew("Bearer one"));
  write("two");
  EXPECT_TRUE(credentials->renew("Bearer one"));
  EXPECT_EQ(header(*credentials).value(), "Bearer two");
  EXPECT_TRUE(credentials->renew("Bearer one")) << "another request has renewed it already";
}

TEST_F(CredentialsTest, ATokenFileThatGoesAwayLeavesTheOldToken) {
  write("one");
  const auto credentials = make_credentials({}, token_from_file(path, clock));
  EXPECT_EQ(header(*credentials).value(), "Bearer one");
  std::remove(path.c_str());
  clock.advance(minutes(2));
  EXPECT_EQ(header(*credentials).value(), "Bearer one");
  write("");
  clock.advance(minutes(2));
  EXPECT_EQ(header(*credentials).value(), "Bearer one");
}

TEST_F(CredentialsTest, BadTokenFilesAreNamed) {
  const auto credentials = make_credentials({}, token_from_file(path, clock));
  EXPECT_THAT(header(*credentials).error().message,
              testing::AllOf(HasSubstr(path), HasSubstr("no such file")));
  write(" \n");
  EXPECT_THAT(header(*credentials).error().message, HasSubstr("it is empty"));
  write("a\nX-Other: b\n");
  EXPECT_THAT(header(*credentials).error().message, HasSubstr("more than one line"));
}

}  // namespace
}  // namespace grapnel::kube
