#include "runtime/applier.h"

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

// An object as a server answers it.
std::string object(std::string_view name, int version, std::string_view uid = "u1",
                   std::string_view owner = "o1", bool going = false) {
  return fmt::format(
      R"({{"metadata":{{"namespace":"ns","name":"{}","uid":"{}","resourceVersion":"{}",{}"ownerReferences":[{{"uid":"{}","controller":true}}]}}}})",
      name, uid, version, going ? R"("deletionTimestamp":"2026-01-01T00:00:00Z",)" : "", owner);
}
Create create(std::string_view name) {
  return {&kConfigMap, *parse_json(fmt::format(
                           R"({{"metadata":{{"namespace":"ns","name":"{}",
                               "ownerReferences":[{{"uid":"o1","controller":true}}]}}}})",
                           name))};
}
ObjectRef ref(std::string_view name, std::string_view uid = "u1") {
  return {&kConfigMap, {Interned("ns"), std::string(name)}, kube::Uid(uid)};
}
Json json(std::string_view text) {
  return *parse_json(text);
}

struct ApplierTest : testing::Test {
  simulation::VirtualLoop loop;
  std::shared_ptr<ScriptedTransport> server = std::make_shared<ScriptedTransport>(loop.clock);
  kube::Client client{server, nullptr, {.server = "http://test:1", .clock = &loop.clock}};
  std::vector<std::string> told;
  bool leader = true;
  Applier applier{loop.executor(),
                  client,
                  {.in_flight = 4,
                   .ahead = 2,
                   .clock = &loop.clock,
                   .may_write = [this] { return leader; },
                   .on_event = [this](const Event& e) { told.push_back(e.reason); },
                   .on_count = [this](const Count& c) { told.push_back(c.metric); }}};

  Outcome apply(Applier& by, Plan plan) {
    Outcome out;
    auto task = spawn(loop.executor(), [](Applier& a, Plan p, Outcome& o) -> Task<> {
      o = co_await a.apply(std::move(p));
    }(by, std::move(plan), out));
    EXPECT_TRUE(loop.run_until([&] { return task.done(); }));
    return out;
  }
  Outcome apply(Plan plan) { return apply(applier, std::move(plan)); }
  Outcome apply(Write write) {
    Plan plan;
    plan.add(std::move(write));
    return apply(std::move(plan));
  }
  static std::string only_error(const Outcome& outcome) {
    if (outcome.failed.size() != 1) return fmt::format("{} failures", outcome.failed.size());
    return std::string(to_string(outcome.failed[0].error.reason));
  }
  // "ns/a@7" of a version, "ns/a-u1" of a deletion.
  static std::vector<std::string> traces(const Outcome& outcome) {
    std::vector<std::string> out;
    for (const auto& t : outcome.traces) {
      out.push_back(t.deleted.empty() ? fmt::format("{}@{}", t.key.text(), t.version)
                                      : fmt::format("{}-{}", t.key.text(), t.deleted.text()));
    }
    return out;
  }
};

TEST_F(ApplierTest, StagesComeOneAfterTheOtherThenStatusThenEvents) {
  Plan plan;
  plan.add(create("a"));
  plan.then();
  plan.add(create("b"));
  plan.set_status(ref("owner"), json("{}"), json(R"({"ready":1})"));
  plan.emit(ref("owner"), Event::Type::kNormal, "Created", "made them");
  plan.counts.push_back({"made_total", {}});
  server->answer(object("a", 5));
  server->answer(object("b", 6));
  server->answer(object("owner", 7));
  const auto outcome = apply(plan);
  EXPECT_TRUE(outcome.ok());
  ASSERT_EQ(server->asked.size(), 3U);
  EXPECT_THAT(server->asked[0], HasSubstr("fieldValidation=Ignore"));
  EXPECT_THAT(server->asked[0], HasSubstr(R"("name":"a")"));
  EXPECT_THAT(server->asked[1], HasSubstr(R"("name":"b")"));
  EXPECT_EQ(server->asked[2],
            "PATCH /api/v1/namespaces/ns/configmaps/owner/status"
            "?fieldManager=grapnel&fieldValidation=Ignore "
            R"({"status":{"ready":1},"metadata":{"uid":"u1"}})");
  EXPECT_THAT(traces(outcome), ElementsAre("ns/a@5", "ns/b@6", "ns/owner@7"));
  EXPECT_THAT(told, ElementsAre("Created", "made_total"));
}

// ---- a server that has too much to do -----------------------------------------------------------

ScriptedAnswer too_many(std::string retry_after) {
  return {.status = 429,
          .pieces = {R"({"kind":"Status","reason":"TooManyRequests","code":429})"},
          .headers = {{"Retry-After", std::move(retry_after)}}};
}

TEST_F(ApplierTest, WhatTheServerPutsOffIsSentAgainWhenItSaid) {
  server->answer(too_many("2"));
  server->answer(too_many("1"));
  server->answer(object("a", 5));
  const Instant start = loop.clock.instant();
  const auto outcome = apply(create("a"));
  EXPECT_TRUE(outcome.ok());
  EXPECT_THAT(traces(outcome), ElementsAre("ns/a@5"));
  EXPECT_EQ(server->asked.size(), 3U);
  EXPECT_GE(loop.clock.instant() - start, seconds(3));
  EXPECT_LT(loop.clock.instant() - start, seconds(4));
}

TEST_F(ApplierTest, WhatTheServerPutsOffAgainAndAgainIsLeftToTheQueue) {
  for (int i = 0; i < 20; ++i) server->answer(too_many("1"));
  const auto outcome = apply(create("a"));
  EXPECT_EQ(only_error(outcome), "TooManyRequests");
  EXPECT_EQ(server->asked.size(), 5U);
}

TEST_F(ApplierTest, WhatTheServerPutsOffForLongIsLeftToTheQueue) {
  server->answer(too_many("60"));
  const auto outcome = apply(create("a"));
  EXPECT_EQ(only_error(outcome), "TooManyRequests");
  EXPECT_EQ(outcome.failed[0].error.retry_after, seconds(60));
  EXPECT_EQ(server->asked.size(), 1U);
}

TEST_F(ApplierTest, WhoIsNoLongerTheLeaderSendsNothingAgain) {
  server->answer(too_many("1"));
  Outcome out;
  auto task = spawn(loop.executor(), [](Applier& a, Outcome& o) -> Task<> {
    Plan plan;
    plan.add(create("a"));
    o = co_await a.apply(std::move(plan));
  }(applier, out));
  EXPECT_TRUE(loop.run_until([&] { return server->asked.size() == 1; }));
  leader = false;
  EXPECT_TRUE(loop.run_until([&] { return task.done(); }));
  EXPECT_EQ(only_error(out), "Cancelled");
  EXPECT_EQ(server->asked.size(), 1U);
}

// A server with room for so many at once, like a priority level's seats and its queue.
class CrowdedTransport final : public http::Transport {
 public:
  CrowdedTransport(Clock& clock, size_t takes) : room(takes), clock_(clock) {}
  size_t room;
  size_t put_off = 0;
  size_t granted = 0;
  size_t most_at_once = 0;

  Task<Result<http::Response>> send(const http::Request&) override {
    if (under_way_ == room) {
      ++put_off;
      co_return http::Response{.status = 429,
                               .headers = {{"Retry-After", "1"}},
                               .body = R"({"kind":"Status","reason":"TooManyRequests"})"};
    }
    most_at_once = std::max(most_at_once, ++under_way_);
    co_await clock_.sleep(milliseconds(100));
    --under_way_;
    ++granted;
    co_return http::Response{.status = 201, .body = object("a", 5)};
  }
  Task<Result<http::StreamResponse>> open(const http::Request&) override {
    co_return fail(Reason::kUnknown, "not asked for");
  }

 private:
  Clock& clock_;
  size_t under_way_ = 0;
};

struct CrowdedTest : ApplierTest {
  std::shared_ptr<CrowdedTransport> crowded = std::make_shared<CrowdedTransport>(loop.clock, 50);
  kube::Client to{crowded, nullptr, {.server = "http://test:1", .clock = &loop.clock}};
  Applier fast{loop.executor(), to, {.in_flight = 200, .clock = &loop.clock}};

  Outcome create_many(int count) {
    Plan plan;
    for (int i = 0; i < count; ++i) plan.add(create(fmt::format("a{}", i)));
    return apply(fast, std::move(plan));
  }
};

TEST_F(CrowdedTest, ACrowdedServerSoonGetsAsManyAsItTakes) {
  for (const size_t most : {200U, 20U}) {  // the second time it has learnt
    crowded->put_off = crowded->granted = 0;
    const Instant start = loop.clock.instant();
    EXPECT_TRUE(create_many(1000).ok());
    EXPECT_EQ(crowded->granted, 1000U);
    EXPECT_LE(crowded->put_off, most);
    EXPECT_LT(loop.clock.instant() - start, seconds(4)) << "2 s where all are taken";
  }
}

TEST_F(CrowdedTest, AFewAreUnderWayHoweverCrowdedItWas) {
  crowded->room = 0;
  while (crowded->put_off < 200) EXPECT_FALSE(create_many(1).ok());
  crowded->room = 100;
  EXPECT_TRUE(create_many(50).ok());
  EXPECT_EQ(crowded->most_at_once, 4U);
}

// ---- stages -------------------------------------------------------------------------------------

TEST_F(ApplierTest, AFailedStageEndsThePlan) {
  Plan plan;
  plan.add(create("a"));
  plan.then();
  plan.add(create("b"));
  plan.set_status(ref("owner"), json("{}"), json(R"({"ready":1})"));
  plan.emit(ref("owner"), Event::Type::kNormal, "Created", "made them");
  server->refuse(403, "Forbidden", "exceeded quota");
  const auto outcome = apply(plan);
  EXPECT_EQ(only_error(outcome), "Forbidden");
  EXPECT_TRUE(is_refusal(outcome.failed[0].error));
  EXPECT_EQ(server->asked.size(), 1U);
  EXPECT_THAT(told, IsEmpty());
}

// Twenty writes, of which the server grants the first ones.
struct RefusalTest : ApplierTest {
  Outcome apply_granting(int granted) {
    Plan plan;
    for (int i = 0; i < 20; ++i) plan.add(create(fmt::format("c{}", i)));
    for (int i = 0; i < granted; ++i) server->answer(object(fmt::format("c{}", i), 10 + i));
    for (int i = granted; i < 20; ++i) server->refuse(403, "Forbidden", "exceeded quota");
    return apply(plan);
  }
};

TEST_F(RefusalTest, WhatIsRefusedFromTheStartIsTriedByThoseThatGoAhead) {
  const auto outcome = apply_granting(0);
  EXPECT_EQ(outcome.failed.size(), 2U);
  EXPECT_EQ(outcome.sent, 2U);
}

TEST_F(RefusalTest, ALaterRefusalStopsAllThatAreNotUnderWay) {
  const auto outcome = apply_granting(5);
  EXPECT_EQ(outcome.traces.size(), 5U);
  EXPECT_EQ(outcome.failed.size(), 4U) << "as many as may be under way";
  EXPECT_EQ(outcome.sent, 9U);
}

TEST_F(RefusalTest, AllAreSentWhenAllAreGranted) {
  const auto outcome = apply_granting(20);
  EXPECT_TRUE(outcome.ok());
  EXPECT_EQ(outcome.sent, 20U);
}

TEST_F(ApplierTest, NothingIsSentThatWouldChangeNothing) {
  Plan plan;
  plan.add(Patch{.target = ref("a"), .body = json("{}")});
  plan.add(Patch{.target = ref("a"), .body = json(R"({"metadata":{"labels":{}}})")});
  plan.add(Patch{.target = ref("a"), .type = Patch::Type::kJson, .body = json("[]")});
  plan.set_status(ref("a"), json(R"({"x":1})"), json(R"({"x":1})"));
  EXPECT_TRUE(apply(plan).ok());
  EXPECT_THAT(server->asked, IsEmpty());
}

TEST_F(ApplierTest, RemovingAFieldIsAChange) {
  server->answer(object("a", 5));
  EXPECT_TRUE(apply(Patch{.target = ref("a"), .body = json(R"({"data":{"x":null}})")}).ok());
  EXPECT_EQ(server->asked.size(), 1U);
}

TEST_F(ApplierTest, AfterTheLeadIsLostNothingIsSent) {
  leader = false;
  EXPECT_EQ(only_error(apply(create("a"))), "Cancelled");
  EXPECT_THAT(server->asked, IsEmpty());
}

// ---- single writes: a row each --------------------------------------------------------------

struct Row {
  std::string name;
  Write write;
  std::vector<ScriptedAnswer> answers;
  std::string error;  // "" for success
  std::vector<std::string> traces;
};

ScriptedAnswer status(int code, std::string_view reason, std::string_view details = "{}") {
  return {.status = code,
          .pieces = {fmt::format(
              R"({{"kind":"Status","status":"Failure","reason":"{}","message":"m","details":{}}})",
              reason, details)}};
}
ScriptedAnswer ok(std::string body) {
  return {.pieces = {std::move(body)}};
}
const ScriptedAnswer kLost{.unreachable = true, .ambiguous = true};
const ScriptedAnswer kRefused{.unreachable = true};
const ScriptedAnswer kNotThere = status(404, "NotFound");
const Patch kMerge{.target = ref("a"), .body = json(R"({"data":{"x":"1"}})")};
const Patch kVersioned{.target = ref("a"), .body = json(R"({"data":{"x":"1"}})"), .if_version = 4};
const Patch kJsonPatch{.target = ref("a"),
                       .type = Patch::Type::kJson,
                       .body = json(R"([{"op":"add","path":"/data/x","value":"1"}])")};
const Apply kApply{&kConfigMap, json(R"({"metadata":{"namespace":"ns","name":"a"}})"),
                   kube::Uid("u1")};
const Apply kApplyNew{&kConfigMap, json(R"({"metadata":{"namespace":"ns","name":"a"}})"), {}};
const Delete kDelete{.target = ref("a")};

const std::vector<Row> kRows = {
    {"Creates", create("a"), {ok(object("a", 5))}, "", {"ns/a@5"}},
    {"CreatedBeforeByUs",
     create("a"),
     {status(409, "AlreadyExists"), ok(object("a", 5))},
     "",
     {"ns/a@5"}},
    {"NameTakenByAStranger",
     create("a"),
     {status(409, "AlreadyExists"), ok(object("a", 5, "u9", "o9"))},
     "AlreadyExists",
     {}},
    {"OurOldOneIsStillBeingDeleted",
     create("a"),
     {status(409, "AlreadyExists"), ok(object("a", 5, "u1", "o1", true))},
     "Conflict",
     {"ns/a@5"}},
    {"ExistedAndWentAway", create("a"), {status(409, "AlreadyExists"), kNotThere}, "Conflict", {}},
    {"CreateWithALostAnswerThatTookEffect",
     create("a"),
     {kLost, ok(object("a", 5))},
     "",
     {"ns/a@5"}},
    {"CreateWithALostAnswerThatDidNot", create("a"), {kLost, kNotThere}, "Transport", {}},
    {"CreateWhereTheServerFailedMidway",
     create("a"),
     {status(500, "InternalError"), ok(object("a", 5))},
     "",
     {"ns/a@5"}},
    {"CreateThatNeverLeft", create("a"), {kRefused}, "Transport", {}},
    {"CreateThatIsInvalid", create("a"), {status(422, "Invalid")}, "Invalid", {}},
    {"CreateWithoutAName", Create{&kConfigMap, json(R"({"metadata":{}})")}, {}, "Usage", {}},
    {"Deletes", kDelete, {ok(R"({"kind":"Status","status":"Success"})")}, "", {"ns/a-u1"}},
    {"DeletedBefore", kDelete, {kNotThere}, "", {"ns/a-u1"}},
    {"DeletedAndMadeAnew",
     kDelete,
     {status(409, "Conflict"), ok(object("a", 9, "u2"))},
     "",
     {"ns/a-u1"}},
    {"DeleteThatConflictsOtherwise",
     kDelete,
     {status(409, "Conflict"), ok(object("a", 9, "u1"))},
     "Conflict",
     {}},
    {"DeleteWithALostAnswerThatTookEffect", kDelete, {kLost, kNotThere}, "", {"ns/a-u1"}},
    {"DeleteWithALostAnswerThatIsUnderWay",
     kDelete,
     {kLost, ok(object("a", 9, "u1", "o1", true))},
     "",
     {"ns/a-u1"}},
    {"DeleteWithALostAnswerThatDidNot", kDelete, {kLost, ok(object("a", 4))}, "Transport", {}},
    {"DeleteWithoutAUid", Delete{.target = ref("a", "")}, {}, "Usage", {}},
    {"Patches", kMerge, {ok(object("a", 6))}, "", {"ns/a@6"}},
    {"PatchOfWhatIsGone", kMerge, {kNotThere}, "Conflict", {"ns/a-u1"}},
    {"PatchOfAnother",
     kMerge,
     {status(422, "Invalid", R"({"causes":[{"field":"metadata.uid"}]})"), ok(object("a", 9, "u2"))},
     "Conflict",
     {"ns/a-u1"}},
    {"PatchThatIsInvalid",
     kMerge,
     {status(422, "Invalid", R"({"causes":[{"field":"data.x"}]})")},
     "Invalid",
     {}},
    {"PatchOfAnOldVersionLearnsTheNewOne",
     kVersioned,
     {status(409, "Conflict"), ok(object("a", 9))},
     "Conflict",
     {"ns/a@9"}},
    {"PatchWithALostAnswerIsNotRepeatedBeforeTheCacheKnows",
     kMerge,
     {kLost, ok(object("a", 9))},
     "Transport",
     {"ns/a@9"}},
    {"JsonPatchWhoseTestFails",
     kJsonPatch,
     {status(422, "Invalid"), ok(object("a", 9, "u2"))},
     "Conflict",
     {"ns/a-u1"}},
    {"JsonPatchThatIsInvalid",
     kJsonPatch,
     {status(422, "Invalid"), ok(object("a", 9, "u1"))},
     "Invalid",
     {"ns/a@9"}},
    {"Applies", kApply, {ok(object("a", 6))}, "", {"ns/a@6"}},
    {"ApplyDoesNotBringBackWhatIsGone",
     kApply,
     {status(409, "Conflict"), kNotThere},
     "Conflict",
     {"ns/a-u1"}},
    {"ApplyOfANewOneWithoutItsNamespace", kApplyNew, {kNotThere}, "NotFound", {}},
};

class SingleWrites : public ApplierTest, public testing::WithParamInterface<Row> {};

TEST_P(SingleWrites, EndAsTheyShould) {
  const Row& row = GetParam();
  for (const auto& answer : row.answers) server->answer(answer);
  const auto outcome = apply(row.write);
  EXPECT_EQ(outcome.ok() ? "" : only_error(outcome), row.error);
  EXPECT_EQ(traces(outcome), row.traces);
  EXPECT_EQ(server->asked.size(), row.answers.size());
}

INSTANTIATE_TEST_SUITE_P(All, SingleWrites, testing::ValuesIn(kRows),
                         [](const auto& row) { return row.param.name; });

TEST_F(ApplierTest, WritesNameTheObjectTheyMean) {
  for (int i = 0; i < 4; ++i) server->answer(object("a", 5));
  apply(kDelete);
  apply(kVersioned);
  apply(kJsonPatch);
  apply(kApply);
  ASSERT_EQ(server->asked.size(), 4U);
  EXPECT_THAT(server->asked[0], HasSubstr(R"("preconditions":{"uid":"u1"})"));
  EXPECT_THAT(server->asked[1], HasSubstr(R"("metadata":{"uid":"u1","resourceVersion":"4"})"));
  EXPECT_THAT(server->asked[2],
              HasSubstr(R"([{"op":"test","path":"/metadata/uid","value":"u1"},{"op":"add")"));
  EXPECT_THAT(server->asked[3], HasSubstr(R"("uid":"u1")"));
  EXPECT_THAT(server->asked[3], HasSubstr("force=true"));
}

struct Thing {
  kube::Meta meta;
  bool operator==(const Thing&) const = default;
};

TEST_F(ApplierTest, TheSameApplyIsNotSentAgainUntilSomebodyTouchesTheObject) {
  Cache<Thing> cache(kConfigMap);
  applier.use(cache);
  const auto see = [&](kube::ResourceVersion version) {
    Thing thing;
    thing.meta.key = ref("a").key;
    thing.meta.uid = kube::Uid("u1");
    thing.meta.resource_version = version;
    cache.update(thing);
  };
  server->answer(object("a", 6));
  apply(kApply);
  see(6);
  apply(kApply);
  EXPECT_EQ(server->asked.size(), 1U) << "nobody has changed it";
  see(7);
  server->answer(object("a", 8));
  apply(kApply);
  EXPECT_EQ(server->asked.size(), 2U) << "somebody has";
  see(8);
  Apply other = kApply;
  ensure_object(other.object.as_object(), "data")["x"] = "1";
  server->answer(object("a", 9));
  apply(other);
  EXPECT_EQ(server->asked.size(), 3U) << "we want something else";

  Cache<Thing> empty(kConfigMap);
  Cache<Thing> ahead(kConfigMap);
  applier.use(empty);
  applier.use(ahead);
  see(9);
  apply(other);
  EXPECT_EQ(server->asked.size(), 3U) << "a cache that does not have it says nothing";
  ahead.update(*cache.get(ref("a").key));
  apply(other);
  EXPECT_EQ(server->asked.size(), 3U);
  Thing touched = *cache.get(ref("a").key);
  touched.meta.resource_version = 10;
  ahead.update(touched);
  server->answer(object("a", 11));
  apply(other);
  EXPECT_EQ(server->asked.size(), 4U) << "one of the caches knows that somebody has touched it";
}

}  // namespace
}  // namespace grapnel::runtime
