// Our own API server on virtual time: the same seed gives the same run, and faults are found.
#include "tests/simulation/our_server.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/log.h"
#include "tests/simulation/echo.h"

namespace grapnel::simulation {
namespace {

using testing::ElementsAre;

Report run(uint64_t seed) {
  log_setup(LogFormat::kText, static_cast<LogLevel>(99));
  const auto subject = make_echo_subject();
  return World(seed, *subject, {.make_server = make_our_server}).run();
}

TEST(OurServer, ASeedRepeatsItsRun) {
  size_t writes = 0;
  for (uint64_t seed = 1; seed <= 4; ++seed) {
    const Report first = run(seed);
    EXPECT_EQ(first.violation, std::nullopt);
    writes += first.writes;
    EXPECT_EQ(first.digest, run(seed).digest) << seed;
  }
  EXPECT_GT(writes, 0U);
}

TEST(OurServer, MirrorsWhatItHolds) {
  const auto subject = make_echo_subject();
  VirtualClock clock;
  OurServer server(*subject, with_common(subject->kinds()), clock, 1);
  std::vector<std::string> seen;
  server.on_write([&](const WriteSeen& write) {
    seen.push_back(write.who + " " + write.verb + (write.changed ? "" : " nothing"));
  });
  const std::string maps = collection_of(kube::kinds::kConfigMap);
  const auto object = *parse_json(
      R"({"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"a"},"data":{"k":"v"}})");
  EXPECT_EQ(server.ask("anna", "POST", maps, object).status, 201);
  EXPECT_EQ(server.ask("bert", "PATCH", maps + "/a", object).status, 200);
  const Json* held = server.find(kube::kinds::kConfigMap, {Interned("default"), "a"});
  ASSERT_NE(held, nullptr);
  EXPECT_TRUE(server.exists(meta_text(*held, "uid")));
  EXPECT_EQ(server.ask("anna", "DELETE", maps + "/a").status, 200);
  EXPECT_EQ(server.find(kube::kinds::kConfigMap, {Interned("default"), "a"}), nullptr);
  EXPECT_THAT(seen, ElementsAre("anna create", "bert update nothing", "anna delete"));
}

}  // namespace
}  // namespace grapnel::simulation
