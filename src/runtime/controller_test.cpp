#include "runtime/controller.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/scripted_transport_test.h"
#include "tests/simulation/virtual_loop.h"

namespace grapnel::runtime {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
const kube::Kind& kConfigMap = kube::kinds::kConfigMap;

struct Thing {
  kube::Meta meta;
  bool operator==(const Thing&) const = default;
};

Thing thing(std::string name, std::string_view uid, kube::ResourceVersion version) {
  Thing t;
  t.meta.key = {Interned("ns"), std::move(name)};
  t.meta.uid = kube::Uid(uid);
  t.meta.resource_version = version;
  return t;
}

std::string object(std::string_view name, int version) {
  return fmt::format(
      R"({{"metadata":{{"namespace":"ns","name":"{}","uid":"u1","resourceVersion":"{}"}}}})", name,
      version);
}

struct ControllerTest : testing::Test, ControllerObserver {
  simulation::VirtualLoop loop;
  Random random{1};
  std::shared_ptr<ScriptedTransport> server = std::make_shared<ScriptedTransport>(loop.clock);
  kube::Client client{server, nullptr, {.server = "http://test:1", .clock = &loop.clock}};
  Queue queue{loop.clock, random, {.jitter = 0}};
  Applier applier{loop.executor(), client, {}};
  Cache<Thing> cache{kConfigMap};
  const kube::Key key{Interned("ns"), "owner"};

  Plan next;  // what the planner answers
  bool gone = false;
  bool breaks = false;
  Duration takes{};
  std::vector<std::string> asked;  // "plan", or "refused: create …"
  std::vector<std::string> events;
  std::vector<End> ends;
  Controller controller{
      {.name = "test",
       .kind = &kConfigMap,
       .plan =
           [this](const kube::Key&, Time, const Refusal* refused) {
             asked.push_back(refused == nullptr ? "plan" : "refused: " + refused->what);
             loop.clock.advance(takes);
             if (breaks) throw std::runtime_error("out of range");
             return gone ? std::nullopt : std::optional(next);
           }},
      queue,
      applier,
      loop.clock};

  ControllerTest() {
    controller.use(cache);
    controller.set_observer(this);
    controller.on_event([this](const Event& e) { events.push_back(e.reason + " " + e.message); });
    cache.update(thing("owner", "u1", 1));
    cache.advance(5);
    next.add(Create{&kConfigMap, *parse_json(R"({"metadata":{"namespace":"ns","name":"a"}})")});
  }

  void planned(const std::string&, End end, Duration) override { ends.push_back(end); }

  // Takes the key from the queue, if it is there, and works on it. Returns whether it was.
  bool turn() {
    const auto item = queue.take();
    if (!item) return false;
    auto task = spawn(loop.executor(), controller.process(item->key));
    EXPECT_TRUE(loop.run_until([&] { return task.done(); }));
    queue.done(*item);
    return true;
  }
  Duration due() {
    const auto at = queue.next_due();
    return at ? *at - loop.clock.instant() : Duration(-1);
  }
};

TEST_F(ControllerTest, PlansOnlyWhenTheCacheHasSeenItsOwnWrites) {
  server->answer(object("a", 9));
  controller.enqueue(key);
  EXPECT_TRUE(turn());
  controller.enqueue(key);
  EXPECT_TRUE(turn());
  EXPECT_THAT(asked, ElementsAre("plan")) << "the cache is at 5, the write at 9";
  cache.advance(8);
  EXPECT_FALSE(turn());
  cache.advance(9);
  EXPECT_TRUE(turn()) << "the key comes back when the cache has come to 9";
  EXPECT_THAT(asked, ElementsAre("plan", "plan"));
}

TEST_F(ControllerTest, WhatIsSlowToPlanIsPlannedLessOften) {
  next = {};
  takes = milliseconds(4);
  controller.enqueue(key);
  turn();
  controller.enqueue(key);
  EXPECT_TRUE(turn());
  EXPECT_EQ(asked.size(), 1U) << "it rests for fifty times four milliseconds";
  EXPECT_EQ(due(), milliseconds(200));
  loop.clock.advance(milliseconds(200));
  EXPECT_TRUE(turn()) << "what came meanwhile is not lost";
  EXPECT_EQ(asked.size(), 2U);
}

TEST_F(ControllerTest, WhatOnlyCountsIsWrittenAFewTimesASecond) {
  const ObjectRef owner{&kConfigMap, key, kube::Uid("u1")};
  const auto count = [&](int ready) {
    next = {};
    next.set_status(owner, JsonObject(), JsonObject{{"ready", ready}});
    next.between_counts = milliseconds(200);
    controller.enqueue(key);
    EXPECT_TRUE(turn());
    cache.advance(100);
    return server->asked.size();
  };
  for (int version = 10; version < 20; ++version) server->answer(object("owner", version));
  EXPECT_EQ(count(1), 1U);
  EXPECT_EQ(count(2), 1U);
  EXPECT_EQ(due(), milliseconds(199)) << "a millisecond for the first";
  loop.clock.advance(milliseconds(199));
  EXPECT_TRUE(turn());
  EXPECT_EQ(server->asked.size(), 2U) << "what came meanwhile is not lost";
  EXPECT_THAT(server->asked.back(), HasSubstr(R"({"ready":2})"));

  EXPECT_EQ(count(3), 2U);
  next.emit(owner, Event::Type::kNormal, "Completed", "it is done");
  controller.enqueue(key);
  EXPECT_TRUE(turn());
  EXPECT_EQ(server->asked.size(), 3U) << "news does not wait";
}

TEST_F(ControllerTest, TheObjectItselfInTheCacheCountsAsSeen) {
  server->answer(object("a", 9));
  controller.enqueue(key);
  turn();
  cache.update(thing("a", "u9", 9));
  controller.enqueue(key);
  turn();
  EXPECT_EQ(asked.size(), 2U);
}

TEST_F(ControllerTest, EveryCacheOfTheKindMustHaveSeenItsWrites) {
  Cache<Thing> second{kConfigMap};
  Cache<Thing> of_another_kind{kube::kinds::kSecret};
  second.advance(5);
  of_another_kind.advance(5);
  std::vector<const CacheBase*> doubted;
  for (CacheBase* one : {static_cast<CacheBase*>(&cache), static_cast<CacheBase*>(&second),
                         static_cast<CacheBase*>(&of_another_kind)}) {
    controller.use(*one);
    one->on_doubt([&doubted, one](CacheBase::Doubt) { doubted.push_back(one); });
  }
  server->answer(object("a", 9));
  controller.enqueue(key);
  turn();
  cache.advance(9);
  EXPECT_FALSE(turn());
  controller.enqueue(key);
  turn();
  EXPECT_THAT(asked, ElementsAre("plan")) << "the second does not know of it";
  loop.clock.advance(seconds(15));
  turn();
  EXPECT_THAT(doubted, ElementsAre(&second));
  second.advance(9);
  EXPECT_TRUE(turn());
  EXPECT_THAT(asked, ElementsAre("plan", "plan"));
}

TEST_F(ControllerTest, WaitsForADeletionToShow) {
  cache.update(thing("a", "u7", 3));
  next = {};
  next.add(Delete{.target = {&kConfigMap, {Interned("ns"), "a"}, kube::Uid("u7")}});
  server->answer(R"({"kind":"Status","status":"Success"})");
  controller.enqueue(key);
  turn();
  controller.enqueue(key);
  turn();
  EXPECT_EQ(asked.size(), 1U);
  auto going = thing("a", "u7", 9);
  going.meta.deleted = loop.clock.now();
  cache.update(going);
  cache.advance(9);
  next = {};
  EXPECT_TRUE(turn());
  EXPECT_EQ(asked.size(), 2U) << "an object that is going counts as deleted";
}

TEST_F(ControllerTest, ACacheThatStaysBehindIsDoubtedAndNeverPlannedOn) {
  std::vector<CacheBase::Doubt> doubts;
  cache.on_doubt([&](CacheBase::Doubt doubt) { doubts.push_back(doubt); });
  server->answer(object("a", 9));
  controller.enqueue(key);
  turn();
  next = {};
  controller.enqueue(key);
  turn();
  EXPECT_THAT(doubts, IsEmpty());
  loop.clock.advance(seconds(15));
  EXPECT_TRUE(turn());
  EXPECT_THAT(doubts, ElementsAre(CacheBase::Doubt::kConnection));
  loop.clock.advance(minutes(5));
  EXPECT_TRUE(turn());
  EXPECT_EQ(doubts.back(), CacheBase::Doubt::kContents);
  EXPECT_EQ(asked.size(), 1U);
  cache.set_complete_as_of(loop.clock.instant());
  cache.advance(3);
  EXPECT_TRUE(turn()) << "a whole list counts, whatever its version: a database was restored";
  EXPECT_EQ(asked.size(), 2U);
}

TEST_F(ControllerTest, AWriteOfUnknownFateIsLookedIntoBeforeAnythingIsPlanned) {
  const ScriptedAnswer lost{.unreachable = true, .ambiguous = true};
  for (int i = 0; i < 3; ++i) server->answer(lost);
  server->answer(object("a", 9));
  controller.enqueue(key);
  turn();
  EXPECT_EQ(server->asked.size(), 2U) << "neither the create nor the question was answered";
  while (server->asked.size() < 4) {
    loop.clock.advance(seconds(1));
    turn();
  }
  EXPECT_EQ(asked.size(), 1U) << "the object is there, but not in the cache";
  next = {};
  cache.advance(9);
  EXPECT_TRUE(turn());
  EXPECT_EQ(asked.size(), 2U);
}

TEST_F(ControllerTest, LooksAgainWhenThePlanSaysSo) {
  next = {};
  next.look_again_in(seconds(30));
  controller.enqueue(key);
  turn();
  EXPECT_EQ(due(), seconds(30));
}

TEST_F(ControllerTest, AConflictComesBackAlmostAtOnce) {
  next = {};
  next.add(Patch{.target = {&kConfigMap, key, kube::Uid("u1")},
                 .body = *parse_json(R"({"data":{"x":"1"}})"),
                 .if_version = 1});
  server->refuse(409, "Conflict");
  server->answer(object("owner", 8));
  controller.enqueue(key);
  turn();
  EXPECT_EQ(due(), milliseconds(5));
  loop.clock.advance(milliseconds(5));
  EXPECT_TRUE(turn());
  EXPECT_EQ(asked.size(), 1U) << "but not from the same stale cache";
  cache.advance(8);
  server->answer(object("owner", 9));
  EXPECT_TRUE(turn());
  EXPECT_EQ(asked.size(), 2U);
  EXPECT_EQ(queue.failures(controller.lane(), key), 0) << "success forgets";
}

TEST_F(ControllerTest, ATransientFailureWaitsAsLongAsTheServerAsks) {
  server->answer({.status = 429,
                  .pieces = {R"({"kind":"Status","reason":"TooManyRequests","code":429})"},
                  .headers = {{"Retry-After", "7"}}});
  controller.enqueue(key);
  turn();
  EXPECT_EQ(due(), seconds(7));
  EXPECT_THAT(asked, ElementsAre("plan")) << "the planner is not bothered";
  EXPECT_THAT(events, IsEmpty());
}

TEST_F(ControllerTest, ARefusalIsToldToThePlannerWhoseStatusIsWritten) {
  server->refuse(403, "Forbidden", "exceeded quota");
  next.set_status({&kConfigMap, key, kube::Uid("u1")}, *parse_json("{}"),
                  *parse_json(R"({"refused":true})"));
  server->answer(object("owner", 8));
  controller.enqueue(key);
  turn();
  EXPECT_THAT(asked, ElementsAre("plan", "refused: create ConfigMap ns/a"));
  ASSERT_EQ(server->asked.size(), 2U) << "the refused create is not sent again";
  EXPECT_THAT(server->asked[1], HasSubstr("/owner/status"));
  EXPECT_THAT(events, ElementsAre(HasSubstr("FailedCreate create ConfigMap ns/a: exceeded quota")));
  EXPECT_EQ(due(), seconds(1));
}

TEST_F(ControllerTest, ThePlannersOwnWordsReplaceOurs) {
  server->refuse(422, "Invalid");
  next.emit({&kConfigMap, key, kube::Uid("u1")}, Event::Type::kWarning, "TooBig", "…");
  controller.enqueue(key);
  turn();
  EXPECT_THAT(events, IsEmpty());
}

TEST_F(ControllerTest, ARefusalDoesNotLoopHot) {
  for (int i = 0; i < 100; ++i) server->refuse(422, "Invalid");
  controller.enqueue(key);
  turn();
  const Instant start = loop.clock.instant();
  while (loop.clock.instant() - start < minutes(10)) {
    if (!turn()) loop.clock.advance(milliseconds(100));
  }
  EXPECT_LE(server->asked.size(), 10U);
}

TEST_F(ControllerTest, AnObjectThatIsGoneIsForgotten) {
  server->refuse(500, "InternalError");
  server->refuse(404, "NotFound");
  controller.enqueue(key);
  turn();
  EXPECT_EQ(queue.failures(controller.lane(), key), 1);
  gone = true;
  loop.clock.advance(seconds(1));
  EXPECT_TRUE(turn());
  EXPECT_EQ(queue.failures(controller.lane(), key), 0);
  EXPECT_EQ(due(), Duration(-1));
}

TEST_F(ControllerTest, APlannerThatThrowsHurtsOnlyItsOwnKey) {
  breaks = true;
  controller.enqueue(key);
  turn();
  EXPECT_EQ(due(), seconds(1));
  breaks = false;
  server->answer(object("a", 5));
  loop.clock.advance(seconds(1));
  EXPECT_TRUE(turn());
  EXPECT_EQ(server->asked.size(), 1U);
}

TEST_F(ControllerTest, AnObjectThatCannotBeMadeHurtsOnlyItsOwnKey) {
  const Plan good = std::exchange(next, {});
  next.add(Create{&kConfigMap, NewObject({Interned("ns"), "b"}, []() -> Json {
                    throw std::runtime_error("out of range");
                  })});
  controller.enqueue(key);
  turn();
  EXPECT_EQ(due(), seconds(1));
  EXPECT_THAT(ends, ElementsAre(End::kDefect));
  EXPECT_THAT(asked, ElementsAre("plan")) << "it is no refusal";
  EXPECT_THAT(server->asked, IsEmpty());
  next = good;
  server->answer(object("a", 5));
  loop.clock.advance(seconds(1));
  EXPECT_TRUE(turn());
  EXPECT_THAT(ends, ElementsAre(End::kDefect, End::kSuccess));
}

TEST(ControllerKey, IsThatOfTheOwnerOfThatKindOnly) {
  kube::Meta meta;
  meta.key = {Interned("ns"), "child"};
  EXPECT_EQ(controller_key(meta, kube::kinds::kJob), std::nullopt);
  meta.owners.push_back({.api_version = Interned("batch/v1"),
                         .kind = Interned("Job"),
                         .name = "train",
                         .controller = true});
  EXPECT_EQ(controller_key(meta, kube::kinds::kJob), (kube::Key{Interned("ns"), "train"}));
  EXPECT_EQ(controller_key(meta, kube::kinds::kCronJob), std::nullopt);
  meta.owners[0].api_version = Interned("example.com/v1");
  EXPECT_EQ(controller_key(meta, kube::kinds::kJob), std::nullopt) << "another group's Job";
  meta.owners[0] = {
      .api_version = Interned("v1"), .kind = Interned("Node"), .name = "n1", .controller = true};
  EXPECT_EQ(controller_key(meta, kube::kinds::kNode), (kube::Key{Interned(), "n1"}));
}

}  // namespace
}  // namespace grapnel::runtime
