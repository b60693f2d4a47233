// The model against what a Kubernetes API server is known to do.
#include "tests/simulation/model.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace grapnel::simulation {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr kube::Kind kThing{"example.com", "v1", "Thing", "things"};
const kube::Kind& kConfigMap = kube::kinds::kConfigMap;
const std::string kThings = "/apis/example.com/v1/namespaces/ns/things";
const std::string kMaps = "/api/v1/namespaces/ns/configmaps";

struct ModelTest : testing::Test {
  ApiModel model{{{kThing, true}, {kConfigMap, false}}};

  http::Response ask(std::string method, std::string target, std::string body = "{}",
                     std::string type = "application/merge-patch+json") {
    return model.handle({.method = std::move(method),
                         .target = std::move(target),
                         .headers = {{"Content-Type", std::move(type)}},
                         .body = std::move(body)},
                        "test");
  }
  static std::string text(const http::Response& r, std::string_view outer, std::string_view inner) {
    return std::string(string_or(at(*parse_json(r.body), outer, inner)));
  }
  static std::string reason(const http::Response& r) {
    return std::string(string_or(find(*parse_json(r.body), "reason")));
  }
  http::Response make(std::string name, std::string extra = "") {
    return ask("POST", kThings,
               R"({"metadata":{"name":")" + name + "\"" + extra + R"(},"spec":{"n":1}})");
  }
};

TEST_F(ModelTest, CreatesOnce) {
  const auto made = make("a");
  EXPECT_EQ(made.status, 201);
  EXPECT_FALSE(text(made, "metadata", "uid").empty());
  EXPECT_EQ(reason(make("a")), "AlreadyExists");
  EXPECT_EQ(ask("GET", kThings + "/a").body, made.body);
  EXPECT_EQ(reason(ask("GET", kThings + "/b")), "NotFound");
}

TEST_F(ModelTest, AWriteThatChangesNothingHasNoVersion) {
  make("a");
  const auto before = model.version();
  EXPECT_EQ(ask("PATCH", kThings + "/a", R"({"spec":{"n":1}})").status, 200);
  EXPECT_EQ(model.version(), before);
}

TEST_F(ModelTest, SpecAndStatusAreWrittenApart) {
  make("a");
  ask("PATCH", kThings + "/a", R"({"spec":{"n":2},"status":{"x":1}})");
  const auto object = *parse_json(ask("GET", kThings + "/a").body);
  EXPECT_EQ(int_or(at(object, "metadata", "generation")), 2);
  EXPECT_EQ(find(object, "status"), nullptr);
  ask("PATCH", kThings + "/a/status", R"({"spec":{"n":9},"status":{"x":1}})");
  const auto after = *parse_json(ask("GET", kThings + "/a").body);
  EXPECT_EQ(int_or(at(after, "spec", "n")), 2);
  EXPECT_EQ(int_or(at(after, "status", "x")), 1);
  EXPECT_EQ(int_or(at(after, "metadata", "generation")), 2);
}

TEST_F(ModelTest, PreconditionsAreHeld) {
  const auto made = make("a");
  EXPECT_EQ(reason(ask("PATCH", kThings + "/a", R"({"metadata":{"resourceVersion":"1"}})")),
            "Conflict");
  EXPECT_EQ(reason(ask("PATCH", kThings + "/a", R"({"metadata":{"uid":"other"}})")), "Invalid");
  EXPECT_EQ(reason(ask("DELETE", kThings + "/a", R"({"preconditions":{"uid":"other"}})")),
            "Conflict");
  const auto uid = text(made, "metadata", "uid");
  EXPECT_EQ(ask("DELETE", kThings + "/a", R"({"preconditions":{"uid":")" + uid + "\"}}").status,
            200);
  EXPECT_EQ(model.all(kThing).size(), 0U);
}

TEST_F(ModelTest, AStaleApplyDoesNotBringBackWhatIsGone) {
  const std::string type = "application/apply-patch+yaml";
  EXPECT_EQ(reason(ask("PATCH", kThings + "/a", R"({"metadata":{"name":"a","uid":"u"}})", type)),
            "Conflict");
  EXPECT_EQ(ask("PATCH", kThings + "/a", R"({"metadata":{"name":"a"}})", type).status, 201);
}

TEST_F(ModelTest, FinalizersHoldAnObjectUntilTheyAreGone) {
  make("a", R"(,"finalizers":["f"])");
  ask("DELETE", kThings + "/a");
  EXPECT_FALSE(text(ask("GET", kThings + "/a"), "metadata", "deletionTimestamp").empty());
  ask("PATCH", kThings + "/a", R"({"metadata":{"finalizers":null}})");
  EXPECT_EQ(ask("GET", kThings + "/a").status, 404);
  std::vector<std::string> types;
  for (const auto& change : model.history(kThing)) types.push_back(change.type);
  EXPECT_THAT(types, ElementsAre("ADDED", "MODIFIED", "DELETED"));
}

TEST_F(ModelTest, OrphansAreCollected) {
  const auto uid = text(make("a"), "metadata", "uid");
  ask("POST", kMaps, R"({"metadata":{"name":"c","ownerReferences":[{"uid":")" + uid + R"("}]}})");
  EXPECT_FALSE(model.collect_one_orphan());
  ask("DELETE", kThings + "/a");
  EXPECT_TRUE(model.collect_one_orphan());
  EXPECT_EQ(model.all(kConfigMap).size(), 0U);
}

TEST_F(ModelTest, PagesAreOneSnapshot) {
  for (const auto* name : {"a", "b", "c"}) make(name);
  const auto first = ask("GET", kThings + "?limit=2");
  const auto token = text(first, "metadata", "continue");
  ASSERT_FALSE(token.empty());
  ask("DELETE", kThings + "/c");
  const auto second = ask("GET", kThings + "?limit=2&continue=" + token);
  EXPECT_THAT(second.body, HasSubstr(R"("name":"c")"));
  EXPECT_EQ(text(second, "metadata", "resourceVersion"),
            text(first, "metadata", "resourceVersion"));
  EXPECT_EQ(reason(ask("GET", kThings + "?continue=" + token)), "Expired");
  EXPECT_EQ(reason(ask("GET", kThings + "?resourceVersion=99999")), "Timeout");
}

TEST_F(ModelTest, WatchesResumeOrExpire) {
  make("a");
  const auto from = std::to_string(model.version());
  make("b");
  const auto target = http::parse_target(kThings + "?watch=true&resourceVersion=" + from);
  const auto answer = model.watch(target);
  ASSERT_FALSE(answer.refused);
  ASSERT_EQ(model.history(kThing).size(), answer.next + 1);
  EXPECT_THAT(ApiModel::line(model.history(kThing)[answer.next]), HasSubstr(R"("name":"b")"));
  make("c");
  model.forget_history();
  EXPECT_EQ(model.watch(target).refused->status, 410);
  const auto initial =
      model.watch(http::parse_target(kThings + "?watch=true&sendInitialEvents=true"));
  ASSERT_EQ(initial.first.size(), 4U);
  EXPECT_THAT(initial.first[3], HasSubstr("initial-events-end"));
  model.set_watch_list(false);
  EXPECT_EQ(model.watch(http::parse_target(kThings + "?watch=true&sendInitialEvents=true"))
                .refused->status,
            422);
}

}  // namespace
}  // namespace grapnel::simulation
