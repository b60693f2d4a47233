#include "cli/cluster_identity.h"

#include <gtest/gtest.h>
#include <unistd.h>

namespace grapnel::cli {
namespace {

namespace fs = std::filesystem;

struct ClusterIdentityTest : testing::Test {
  ClusterPaths paths{fs::path(testing::TempDir()) /
                     ("grapnel_identity_" + std::to_string(::getpid()))};
  Time now{seconds(1'800'000'000)};

  void SetUp() override { fs::create_directories(paths.root); }
  void TearDown() override { fs::remove_all(paths.root); }
};

TEST_F(ClusterIdentityTest, IsTheSameAtTheNextStart) {
  auto first = identity_of_cluster(paths, now).value();
  EXPECT_EQ(first.port, 0);
  first.port = 4321;
  ASSERT_TRUE(keep_identity(paths, first));
  const auto second = identity_of_cluster(paths, now + std::chrono::days(100)).value();
  EXPECT_EQ(second.token, first.token);
  EXPECT_EQ(second.authority.certificate_pem, first.authority.certificate_pem);
  EXPECT_EQ(second.server.key_pem, first.server.key_pem);
  EXPECT_EQ(second.port, 4321);
  EXPECT_EQ(fs::status(paths.identity()).permissions(),
            fs::perms::owner_read | fs::perms::owner_write);
}

TEST_F(ClusterIdentityTest, IsMadeAnewBeforeItsCertificatesEnd) {
  const auto first = identity_of_cluster(paths, now).value();
  const auto second = identity_of_cluster(paths, now + std::chrono::days(200)).value();
  EXPECT_NE(second.token, first.token);
  EXPECT_NE(second.server.certificate_pem, first.server.certificate_pem);
}

TEST_F(ClusterIdentityTest, IsMadeAnewWhenTheFileIsBroken) {
  for (const char* text : {"", "no JSON", "[]", R"({"names": 7, "token": "x"})",
                           R"({"authority": [], "server": null, "token": {}})"}) {
    ASSERT_TRUE(write_private_file(paths.identity(), text));
    EXPECT_FALSE(identity_of_cluster(paths, now).value().token.empty()) << text;
  }
}

}  // namespace
}  // namespace grapnel::cli
