#include "runtime/manager.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/scripted_transport_test.h"
#include "tests/simulation/virtual_loop.h"

namespace grapnel::runtime {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::UnorderedElementsAre;
using End = ScriptedAnswer::End;

struct Thing {
  kube::Meta meta;
  bool operator==(const Thing&) const = default;
};
Result<Thing> decode(JsonView object) {
  auto meta = kube::decode_meta(object);
  if (!meta) return fail(meta.error());
  return Thing{std::move(*meta)};
}

std::string object(std::string_view name, int version) {
  return fmt::format(
      R"({{"metadata":{{"namespace":"ns","name":"{}","uid":"u","resourceVersion":"{}"}}}})", name,
      version);
}
std::string list_of(std::string items) {
  return R"({"metadata":{"resourceVersion":"5"},"items":[)" + items + "]}";
}
std::string lease_of(std::string_view holder, int version) {
  return fmt::format(
      R"({{"metadata":{{"resourceVersion":"{}"}},"spec":{{"holderIdentity":"{}","leaseDurationSeconds":15}}}})",
      version, holder);
}

struct ManagerTest : testing::Test {
  simulation::VirtualLoop loop;
  Random random{1};
  std::shared_ptr<ScriptedTransport> server = std::make_shared<ScriptedTransport>(loop.clock);
  kube::Client client{server, nullptr, {.server = "http://test:1", .clock = &loop.clock}};
  std::unique_ptr<Manager> manager;
  std::vector<std::string> planned;
  bool creates = true;
  std::optional<Result<>> ended;
  Spawned running;

  void start(std::optional<LeaseOptions> lease = std::nullopt) {
    manager = std::make_unique<Manager>(loop.executor(), client, loop.clock, random,
                                        ManagerOptions{.lease = std::move(lease)});
    auto& things = manager->add_informer<Thing>(
        {.kind = kube::kinds::kConfigMap, .watcher = {.watch_list = false}}, decode);
    auto& controller = manager->add_controller(
        {.name = "things",
         .kind = &kube::kinds::kConfigMap,
         .plan = [this](const kube::Key& key, Time, const Refusal*) { return plan(key); }});
    manager->watch(things, controller);
    running = spawn(loop.executor(),
                    [](ManagerTest& t) -> Task<> { t.ended = co_await t.manager->run(); }(*this));
  }
  std::optional<Plan> plan(const kube::Key& key) {
    planned.push_back(key.text());
    Plan p;
    if (creates) {
      p.add(Create{&kube::kinds::kSecret,
                   *parse_json(R"({"metadata":{"namespace":"ns","name":"s"}})")});
    }
    return p;
  }
  bool asked(std::string_view what) const {
    return std::ranges::any_of(server->asked, [&](const auto& request) {
      return request.find(what) != std::string::npos;
    });
  }
  bool end() {
    return loop.run_until([&] { return running.done(); }, minutes(10));
  }
};

TEST_F(ManagerTest, NamesTheKindThatDoesNotSyncAndEnds) {
  for (int i = 0; i < 50; ++i) server->refuse(403, "Forbidden", "configmaps is forbidden");
  start();
  loop.run_for(seconds(10));
  ASSERT_EQ(manager->unready().size(), 1U);
  EXPECT_EQ(manager->unready()[0].first, "ConfigMap (v1)");
  ASSERT_TRUE(end());
  EXPECT_LE(loop.clock.elapsed(), seconds(121));
  ASSERT_FALSE(*ended);
  EXPECT_THAT(ended->error().message, HasSubstr("ConfigMap (v1): configmaps is forbidden"));
}

TEST_F(ManagerTest, PlansForEveryObjectOnceSyncedAndStopsWhenAsked) {
  creates = false;
  server->answer(list_of(object("a", 1) + "," + object("b", 2)));
  server->answer({.end = End::kSilent});
  start();
  loop.run_for(seconds(5));
  EXPECT_TRUE(manager->synced());
  EXPECT_TRUE(manager->working());
  EXPECT_EQ(planned, (std::vector<std::string>{"ns/a", "ns/b"}));
  manager->stop();
  ASSERT_TRUE(end());
  EXPECT_TRUE(*ended);
  EXPECT_FALSE(manager->working());
}

TEST_F(ManagerTest, AStopLetsTheWritesUnderWayEnd) {
  server->answer(list_of(object("a", 1)));
  server->answer({.end = End::kSilent});
  server->answer(object("s", 7));
  start();
  ASSERT_TRUE(loop.run_until([&] { return asked("POST"); }));
  manager->stop();
  loop.settle();
  EXPECT_FALSE(ended) << "its answer has not come yet";
  ASSERT_TRUE(end());
  EXPECT_TRUE(*ended);
  EXPECT_EQ(planned.size(), 1U);
}

TEST_F(ManagerTest, AStopBeforeTheCachesAreSyncedEndsAtOnce) {
  server->answer({.end = End::kSilent});
  start();
  loop.run_for(seconds(1));
  manager->stop();
  ASSERT_TRUE(end());
  EXPECT_TRUE(*ended);
  EXPECT_TRUE(planned.empty());
}

const LeaseOptions kLeaseOptions{.ns = "ns", .name = "lock", .identity = "me"};

TEST_F(ManagerTest, WorksOnlyAsTheLeaderAndGivesTheLeaseBackLast) {
  creates = false;
  server->answer(list_of(object("a", 1)));
  server->answer({.end = End::kSilent});
  server->answer(lease_of("another", 1));
  server->answer(lease_of("another", 1));
  server->answer(lease_of("", 2));
  server->answer(lease_of("me", 3));
  start(kLeaseOptions);
  loop.run_for(milliseconds(2500));
  EXPECT_TRUE(manager->synced()) << "caches are warm before the lease is won";
  EXPECT_TRUE(planned.empty());
  ASSERT_TRUE(loop.run_until([&] { return !planned.empty(); }, seconds(20)));
  EXPECT_TRUE(manager->lease()->leading());
  server->answer(lease_of("me", 3));
  server->answer(lease_of("", 4));
  manager->stop();
  ASSERT_TRUE(end());
  EXPECT_TRUE(*ended);
  EXPECT_THAT(server->asked.back(), HasSubstr(R"("holderIdentity":"")"));
}

TEST_F(ManagerTest, AStopWhileTheLeaseIsBeingWonGivesItBackToo) {
  server->answer(list_of(object("a", 1)));
  server->answer({.end = End::kSilent});
  server->answer(lease_of("", 2));
  server->answer(lease_of("me", 3));  // nobody will read this
  start(kLeaseOptions);
  ASSERT_TRUE(loop.run_until([&] { return asked("PATCH"); }, seconds(5)));
  EXPECT_FALSE(manager->lease()->leading());
  server->answer(lease_of("me", 3));
  server->answer(lease_of("", 4));
  manager->stop();
  ASSERT_TRUE(end());
  EXPECT_THAT(server->asked.back(), HasSubstr(R"("holderIdentity":"")"));
  EXPECT_TRUE(planned.empty());
}

TEST_F(ManagerTest, ANewLeaderReadsWhatTheFormerOneWroteBeforeItPlans) {
  creates = false;
  server->answer(list_of(object("a", 1)));
  server->answer({.end = End::kSilent});
  server->answer(lease_of("", 8));
  server->answer(lease_of("me", 9));
  start(kLeaseOptions);
  ASSERT_TRUE(loop.run_until([&] { return manager->lease()->leading(); }, seconds(5)));
  EXPECT_FALSE(manager->working()) << "the cache is at 5, the lease was won at 9";
  server->answer(list_of(object("b", 2)));
  ASSERT_TRUE(loop.run_until([&] { return !planned.empty(); }, seconds(5)));
  EXPECT_THAT(planned, UnorderedElementsAre("ns/a", "ns/b")) << "a to learn that it is gone";
  manager->stop();
  ASSERT_TRUE(end());
}

TEST_F(ManagerTest, EndsWhenTheLeaseIsLost) {
  server->answer(list_of(""));
  server->answer({.end = End::kSilent});
  server->refuse(404, "NotFound");
  server->answer(lease_of("me", 1));
  server->refuse(409, "Conflict");
  server->answer(lease_of("another", 2));
  start(kLeaseOptions);
  ASSERT_TRUE(end());
  ASSERT_FALSE(*ended);
  EXPECT_THAT(ended->error().message, HasSubstr("lease was lost"));
}

}  // namespace
}  // namespace grapnel::runtime
