#include "runtime/health.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace grapnel::runtime {
namespace {

using testing::HasSubstr;
using testing::Not;

struct HealthTest : testing::Test {
  std::optional<std::string> fault;
  Health health;
  HealthTest() {
    health.add_ready("caches", [this] { return fault; });
    health.set_metrics([] { return "up 1\n"; });
  }
  http::Response get(std::string target) { return health.answer({.target = std::move(target)}); }
};

TEST_F(HealthTest, IsReadyWhenEveryCheckPasses) {
  EXPECT_EQ(get("/readyz").status, 200);
  EXPECT_EQ(get("/readyz").body, "ok");
  EXPECT_EQ(get("/readyz?verbose").body, "[+]ping ok\n[+]caches ok\nreadyz check passed\n");
}

TEST_F(HealthTest, SaysWhatIsNotReady) {
  fault = "JobSet: forbidden";
  const auto answer = get("/readyz");
  EXPECT_EQ(answer.status, 500);
  EXPECT_THAT(answer.body, HasSubstr("[-]caches failed: JobSet: forbidden"));
  EXPECT_EQ(get("/healthz").status, 200) << "it lives, though";
  EXPECT_EQ(get("/livez").body, "ok");
}

TEST_F(HealthTest, NotesStandBesideTheChecksOfReadiness) {
  health.add_ready_notes([] { return std::vector<std::string>{"ray rests: not defined"}; });
  EXPECT_EQ(get("/readyz").body, "ok");
  EXPECT_EQ(get("/readyz?verbose").body,
            "[+]ping ok\n[+]caches ok\n[+]ray rests: not defined\nreadyz check passed\n");
  EXPECT_THAT(get("/livez?verbose").body, Not(HasSubstr("ray")));
  fault = "JobSet: forbidden";
  EXPECT_EQ(get("/readyz").status, 500);
  EXPECT_THAT(get("/readyz").body, HasSubstr("[+]ray rests"));
}

TEST_F(HealthTest, ServesMetricsAndNothingElse) {
  EXPECT_EQ(get("/metrics").body, "up 1\n");
  EXPECT_THAT(std::string(get("/metrics").headers.get("Content-Type")), HasSubstr("version=0.0.4"));
  EXPECT_EQ(get("/secret").status, 404);
  EXPECT_EQ(health.answer({.method = "POST", .target = "/readyz"}).status, 405);
}

}  // namespace
}  // namespace grapnel::runtime
