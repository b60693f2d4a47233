#include "runtime/informer.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/scripted_transport_test.h"
#include "tests/simulation/virtual_loop.h"

namespace grapnel::runtime {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using End = ScriptedAnswer::End;

struct Thing {
  kube::Meta meta;
  int64_t size = 0;
  bool operator==(const Thing&) const = default;
};

Result<Thing> decode_thing(JsonView object) {
  auto meta = kube::decode_meta(object);
  if (!meta) return fail(meta.error());
  Thing thing{.meta = std::move(*meta)};
  const auto size = object.find("size");
  if (!size || !size->as_int()) return fail(Reason::kDecode, "size is not a number");
  thing.size = *size->as_int();
  return thing;
}

std::string thing(std::string_view name, int version, std::string_view size = "1", int uid = 1) {
  return fmt::format(
      R"({{"metadata":{{"namespace":"default","name":"{}","uid":"u{}","resourceVersion":"{}"}},"size":{}}})",
      name, uid, version, size);
}
std::string list(int version, std::vector<std::string> items, std::string_view token = "") {
  return fmt::format(
      R"({{"kind":"ConfigMapList","metadata":{{"resourceVersion":"{}","continue":"{}"}},"items":[{}]}})",
      version, token, fmt::join(items, ","));
}
std::string event(std::string_view type, std::string object) {
  return fmt::format("{{\"type\":\"{}\",\"object\":{}}}\n", type, object);
}
std::string bookmark(int version, bool end = false) {
  return event("BOOKMARK",
               fmt::format(R"({{"metadata":{{"resourceVersion":"{}"{}}}}})", version,
                           end ? R"(,"annotations":{"k8s.io/initial-events-end":"true"})" : ""));
}

struct InformerTest : testing::Test {
  simulation::VirtualLoop loop;
  Random random{1};
  std::shared_ptr<ScriptedTransport> server = std::make_shared<ScriptedTransport>(loop.clock);
  kube::Client client{server, nullptr, {.server = "http://test:1", .clock = &loop.clock}};
  Informer<Thing> informer{client,
                           loop.clock,
                           random,
                           {.kind = kube::kinds::kConfigMap, .watcher = {.watch_list = false}},
                           decode_thing};
  std::vector<std::string> seen;

  InformerTest() { watch_changes(informer); }

  void watch_changes(Informer<Thing>& which) {
    which.cache().add_handler([this](const Thing* before, const Thing* after) {
      const auto size = [](const Thing* t) { return t == nullptr ? "-" : std::to_string(t->size); };
      const auto& name = (after != nullptr ? after : before)->meta.name();
      seen.push_back(fmt::format("{} {}>{}", name, size(before), size(after)));
    });
  }
  void run(InformerBase& which, Duration length = seconds(20)) {
    auto task = spawn(loop.executor(), which.run());
    loop.run_for(length);
    task.cancel();
    loop.settle();
    EXPECT_TRUE(task.done());
  }
};

TEST_F(InformerTest, ListsInPagesAndFollowsTheWatch) {
  server->answer(list(7, {thing("a", 3), thing("b", 4)}, "t1"));
  server->answer(list(7, {thing("c", 5)}));
  server->answer(
      {.pieces = {event("MODIFIED", thing("a", 8, "2")), event("DELETED", thing("b", 9))},
       .end = End::kSilent});
  bool delivered = false;
  informer.on_synced([&] { delivered = seen.size() == 3; });
  run(informer);
  EXPECT_TRUE(informer.synced());
  EXPECT_TRUE(delivered) << "synced only when the whole list is with the handlers";
  EXPECT_THAT(seen, ElementsAre("a ->1", "b ->1", "c ->1", "a 1>2", "b 1>-"));
  EXPECT_EQ(informer.cache().last_version(), 9U);
  ASSERT_GE(server->asked.size(), 3U);
  EXPECT_EQ(server->asked[0], "GET /api/v1/configmaps?limit=500");
  EXPECT_EQ(server->asked[1], "GET /api/v1/configmaps?continue=t1&limit=500");
  EXPECT_THAT(server->asked[2],
              HasSubstr("watch=true&allowWatchBookmarks=true&resourceVersion=7&"));
}

TEST_F(InformerTest, PiecesMayEndAnywhere) {
  const auto text = list(7, {thing("a", 3), thing("b", 4)});
  ScriptedAnswer bytes;
  for (const char c : text) bytes.pieces.emplace_back(1, c);
  server->answer(bytes);
  const auto line = event("ADDED", thing("c", 8));
  server->answer({.pieces = {line.substr(0, 20), line.substr(20)}, .end = End::kSilent});
  run(informer);
  EXPECT_THAT(seen, ElementsAre("a ->1", "b ->1", "c ->1"));
}

TEST_F(InformerTest, StreamsTheInitialStateAndSweepsWhatHasGone) {
  Informer<Thing> streaming{
      client, loop.clock, random, {.kind = kube::kinds::kConfigMap}, decode_thing};
  watch_changes(streaming);
  server->answer(
      {.pieces = {event("ADDED", thing("a", 3)), event("ADDED", thing("b", 4)), bookmark(9, true),
                  event("ERROR", R"({"kind":"Status","code":410,"reason":"Expired"})")}});
  server->answer(
      {.pieces = {event("ADDED", thing("b", 4)), bookmark(12, true)}, .end = End::kSilent});
  run(streaming);
  EXPECT_THAT(seen, ElementsAre("a ->1", "b ->1", "a 1>-"));
  EXPECT_EQ(streaming.cache().last_version(), 12U);
  EXPECT_THAT(server->asked[0], HasSubstr("sendInitialEvents=true"));
}

TEST_F(InformerTest, ABrokenWatchIsResumedWithoutLosingOrRepeatingAnything) {
  server->answer(list(7, {thing("a", 3)}));
  server->answer(
      {.pieces = {event("MODIFIED", thing("a", 8, "2")), event("MODIF", "{}").substr(0, 9)},
       .end = End::kCut});
  server->answer({.pieces = {event("MODIFIED", thing("a", 9, "3"))}, .end = End::kSilent});
  run(informer);
  EXPECT_THAT(seen, ElementsAre("a ->1", "a 1>2", "a 2>3"));
  EXPECT_THAT(server->asked[2], HasSubstr("resourceVersion=8"));
}

TEST_F(InformerTest, AHalfOpenConnectionIsGivenUp) {
  server->answer(list(7, {}));
  server->answer({.end = End::kSilent});
  server->answer({.pieces = {event("ADDED", thing("a", 8))}, .end = End::kSilent});
  run(informer, minutes(4));
  EXPECT_THAT(seen, ElementsAre("a ->1"));
}

TEST_F(InformerTest, ADoubtedConnectionIsOpenedAgainFromWhereItWas) {
  server->answer(list(7, {}));
  server->answer({.end = End::kSilent});
  server->answer({.pieces = {event("ADDED", thing("a", 8))}, .end = End::kSilent});
  auto task = spawn(loop.executor(), informer.run());
  loop.run_for(seconds(5));
  informer.cache().doubt(CacheBase::Doubt::kConnection);
  loop.run_for(seconds(1));
  EXPECT_EQ(server->asked.size(), 2U) << "it is new: it gets its chance";
  loop.run_for(seconds(10));
  informer.cache().doubt(CacheBase::Doubt::kConnection);
  loop.run_for(seconds(1));
  EXPECT_THAT(seen, ElementsAre("a ->1"));
  EXPECT_THAT(server->asked.back(), HasSubstr("resourceVersion=7"));
  task.cancel();
  loop.settle();
}

TEST_F(InformerTest, DoubtedContentsAreListedAgain) {
  server->answer(list(7, {thing("a", 3)}));
  server->answer({.end = End::kSilent});
  server->answer(list(4, {thing("b", 4)}));
  auto task = spawn(loop.executor(), informer.run());
  loop.run_for(seconds(1));
  const Instant doubted = loop.clock.instant();
  EXPECT_LT(informer.cache().complete_as_of(), doubted);
  informer.cache().doubt(CacheBase::Doubt::kContents);
  loop.run_for(seconds(1));
  EXPECT_GE(informer.cache().complete_as_of(), doubted);
  EXPECT_THAT(seen, ElementsAre("a ->1", "b ->1", "a 1>-"));
  EXPECT_EQ(server->asked[2], "GET /api/v1/configmaps?limit=500");
  task.cancel();
  loop.settle();
}

TEST_F(InformerTest, ADoubtThatComesDuringAListIsNotForgotten) {
  server->answer(list(7, {thing("a", 3)}));
  server->answer(list(9, {thing("b", 4)}));
  auto task = spawn(loop.executor(), informer.run());
  informer.cache().doubt(CacheBase::Doubt::kConnection);
  loop.run_for(Duration(1));
  informer.cache().doubt(CacheBase::Doubt::kContents);
  loop.run_for(seconds(1));
  EXPECT_EQ(server->asked.back().find("resourceVersion=7"), std::string::npos);
  EXPECT_THAT(seen, ElementsAre("a ->1", "b ->1", "a 1>-"));
  task.cancel();
  loop.settle();
}

TEST_F(InformerTest, AnObjectThatDoesNotDecodeIsPassedOverAndKeepsItsLastState) {
  server->answer(list(7, {thing("a", 3), thing("bad", 4, "\"x\""), thing("c", 5)}));
  server->answer(
      {.pieces = {event("MODIFIED", thing("a", 8, "\"x\"")), event("MODIFIED", thing("c", 9, "2")),
                  event("ERROR", R"({"kind":"Status","code":410,"reason":"Expired"})")}});
  server->answer(list(10, {thing("a", 8, "\"x\""), thing("bad", 4, "\"x\""), thing("c", 9, "2")}));
  run(informer);
  EXPECT_THAT(seen, ElementsAre("a ->1", "c ->1", "c 1>2")) << "a is not taken for gone";
  EXPECT_EQ(informer.undecodable(), 4U);
  EXPECT_EQ(informer.cache().size(), 2U);
}

// ---- several projections ------------------------------------------------------------------------

// The names and sizes of all things; large ones alone, by name.
struct SharedTest : InformerTest {
  struct Large {
    kube::Meta meta;
    bool operator==(const Large&) const = default;
  };
  static Result<std::optional<Large>> decode_large(JsonView object) {
    auto meta = kube::decode_meta(object);
    if (!meta) return fail(meta.error());
    if (meta->key.name == "bad") return fail(Reason::kDecode, "it is bad");
    if (object.find("size")->as_int().value_or(0) < 10) return std::nullopt;
    return Large{std::move(*meta)};
  }

  std::shared_ptr<Reflector> reflector = std::make_shared<Reflector>(
      client, loop.clock, random,
      InformerOptions{.kind = kube::kinds::kConfigMap, .watcher = {.watch_list = false}});
  Informer<Thing> things{reflector, decode_thing};
  Informer<Large> large{reflector, decode_large};
  std::vector<std::string> order;  // of what the handlers of both are told

  SharedTest() {
    watch_changes(things);
    things.cache().add_handler([this](const Thing* before, const Thing* after) {
      order.push_back("thing " + (after != nullptr ? after : before)->meta.name());
    });
    large.cache().add_handler([this](const Large* before, const Large* after) {
      order.push_back(fmt::format("{} {}", after != nullptr ? "large" : "not large",
                                  (after != nullptr ? after : before)->meta.name()));
    });
  }
};

TEST_F(SharedTest, OneWatchFeedsAllInTheOrderInWhichTheyJoined) {
  server->answer(list(7, {thing("a", 3, "1"), thing("b", 4, "20")}));
  server->answer(
      {.pieces = {event("MODIFIED", thing("a", 8, "30")), event("MODIFIED", thing("b", 9, "2")),
                  event("DELETED", thing("a", 10, "30"))},
       .end = End::kSilent});
  std::vector<std::string> synced;
  things.on_synced([&] { synced.push_back("things"); });
  large.on_synced([&] { synced.push_back(fmt::format("large {}", large.cache().size())); });
  run(things);
  EXPECT_EQ(server->asked.size(), 2U) << "one list, one watch";
  EXPECT_THAT(order, ElementsAre("thing a", "thing b", "large b", "thing a", "large a", "thing b",
                                 "not large b", "thing a", "not large a"));
  EXPECT_THAT(synced, ElementsAre("things", "large 1"));
  EXPECT_EQ(things.cache().size(), 1U);
  EXPECT_EQ(large.cache().size(), 0U) << "one is gone, one is no longer wanted";
  EXPECT_EQ(large.cache().last_version(), 10U) << "also of what it does not want";
  EXPECT_EQ(large.cache().complete_as_of(), things.cache().complete_as_of());
}

TEST_F(SharedTest, WhatOneCannotReadAnotherMay) {
  server->answer(list(7, {thing("bad", 3, "1"), thing("b", 4, "20")}));
  server->answer({.pieces = {event("MODIFIED", thing("bad", 8, "\"x\"")),
                             event("MODIFIED", thing("b", 9, "\"x\""))},
                  .end = End::kSilent});
  run(things);
  EXPECT_THAT(seen, ElementsAre("bad ->1", "b ->20"));
  EXPECT_EQ(things.cache().size(), 2U);
  EXPECT_EQ(large.cache().size(), 0U) << "what is no number is not large";
  EXPECT_EQ(things.undecodable(), 3U) << "an event counts once";
  EXPECT_EQ(large.undecodable(), 3U);
}

TEST_F(SharedTest, WhatIsGoneInANewListLeavesAll) {
  server->answer(list(7, {thing("a", 3, "10"), thing("b", 4, "20")}));
  server->answer({.end = End::kSilent});
  server->answer(list(9, {thing("b", 4, "20")}));
  auto task = spawn(loop.executor(), things.run());
  loop.run_for(seconds(1));
  large.cache().doubt(CacheBase::Doubt::kContents);
  loop.run_for(seconds(1));
  EXPECT_EQ(things.cache().size(), 1U);
  EXPECT_EQ(large.cache().size(), 1U);
  EXPECT_EQ(server->asked[2], "GET /api/v1/configmaps?limit=500");
  task.cancel();
  loop.settle();
}

TEST_F(InformerTest, ADeleteThatNamesAnotherUidIsNotOurs) {
  server->answer(list(7, {thing("a", 3, "1", 1)}));
  server->answer({.pieces = {event("DELETED", thing("a", 8, "1", 2))}, .end = End::kSilent});
  run(informer);
  EXPECT_EQ(informer.cache().size(), 1U);
}

TEST_F(InformerTest, ARefusedListIsRememberedAsTheReason) {
  for (int i = 0; i < 20; ++i) server->refuse(403, "Forbidden", "configmaps is forbidden");
  run(informer, seconds(10));
  EXPECT_FALSE(informer.synced());
  ASSERT_TRUE(informer.trouble());
  EXPECT_THAT(informer.trouble()->message, HasSubstr("configmaps is forbidden"));
  EXPECT_LE(server->asked.size(), 6U) << "no hot loop";
}

TEST_F(InformerTest, ATruncatedListChangesNothingThatWasThere) {
  server->answer(list(7, {thing("a", 3), thing("b", 4)}));
  server->answer(
      {.pieces = {event("ERROR", R"({"kind":"Status","code":410,"reason":"Expired"})")}});
  server->answer(
      {.pieces = {list(9, {thing("a", 3), thing("b", 4)}).substr(0, 150)}, .end = End::kCut});
  server->answer(list(9, {thing("a", 3), thing("b", 4)}));
  run(informer);
  EXPECT_THAT(seen, ElementsAre("a ->1", "b ->1"));
  EXPECT_EQ(informer.cache().last_version(), 9U);
}

TEST_F(InformerTest, GarbageOnTheStreamIsAFailureOfTheStream) {
  server->answer(list(7, {}));
  server->answer({.pieces = {"<html>bad gateway</html>\n"}, .end = End::kSilent});
  server->answer(
      {.pieces = {event("UNKNOWN", "{}"), event("ADDED", thing("a", 8))}, .end = End::kSilent});
  run(informer);
  EXPECT_THAT(seen, ElementsAre("a ->1"));
}

}  // namespace
}  // namespace grapnel::runtime
