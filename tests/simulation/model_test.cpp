// The model against what a Kubernetes API server is known to do.
#include "tests/simulation/model.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kube/types/protobuf.h"

namespace grapnel::simulation {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

constexpr kube::Kind kThing{"example.com", "v1", "Thing", "things"};
const kube::Kind& kConfigMap = kube::kinds::kConfigMap;
const std::string kThings = "/apis/example.com/v1/namespaces/ns/things";
const std::string kMaps = "/api/v1/namespaces/ns/configmaps";

struct ModelTest : testing::Test {
  ApiModel model{{{kThing, true}, {kConfigMap, false}}};

  // What a watch has sent so far; kept open as long as it lives.
  struct Watching {
    Server::WatchAnswer answer;
    std::shared_ptr<std::vector<std::string>> sent = std::make_shared<std::vector<std::string>>();
  };
  Watching watch(std::string target, std::string accept = "application/json") {
    Watching out;
    out.answer =
        model.watch({.target = std::move(target), .headers = {{"Accept", std::move(accept)}}},
                    [sent = out.sent](std::string piece) { sent->push_back(std::move(piece)); });
    return out;
  }
  // "ADDED a", "DELETED a" …
  static std::vector<std::string> events(const Watching& watching) {
    std::vector<std::string> out;
    for (const auto& line : *watching.sent) {
      const auto event = *parse_json(line);
      out.push_back(fmt::format("{} {}", string_or(find(event, "type")),
                                string_or(at(event, "object", "metadata", "name"))));
    }
    return out;
  }

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
  const auto watching = watch(kThings + "?watch=true");
  make("a", R"(,"finalizers":["f"])");
  ask("DELETE", kThings + "/a");
  EXPECT_FALSE(text(ask("GET", kThings + "/a"), "metadata", "deletionTimestamp").empty());
  ask("PATCH", kThings + "/a", R"({"metadata":{"finalizers":null}})");
  EXPECT_EQ(ask("GET", kThings + "/a").status, 404);
  EXPECT_THAT(events(watching), ElementsAre("ADDED a", "MODIFIED a", "DELETED a"));
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
  const std::string target =
      kThings + "?watch=true&resourceVersion=" + std::to_string(model.version());
  make("b");
  EXPECT_THAT(events(watch(target)), ElementsAre("ADDED b"));
  make("c");
  model.forget_history();
  EXPECT_EQ(watch(target).answer.refused->status, 410);
  const auto initial = watch(kThings + "?watch=true&sendInitialEvents=true");
  EXPECT_THAT(events(initial), ElementsAre("ADDED a", "ADDED b", "ADDED c", "BOOKMARK "));
  EXPECT_THAT(initial.sent->back(), HasSubstr("initial-events-end"));
  model.set_watch_list(false);
  EXPECT_EQ(watch(kThings + "?watch=true&sendInitialEvents=true").answer.refused->status, 422);
}

TEST_F(ModelTest, ASelectionIsLeftAndEntered) {
  make("a", R"(,"labels":{"app":"x"})");
  make("b");
  const std::string app = "labelSelector=app";
  EXPECT_THAT(ask("GET", kThings + "?" + app).body, Not(HasSubstr(R"("name":"b")")));
  const auto watching = watch(kThings + "?watch=true&" + app);
  const auto from = std::to_string(model.version());
  ask("PATCH", kThings + "/a", R"({"metadata":{"labels":{"app":"y"}}})");
  ask("PATCH", kThings + "/a", R"({"metadata":{"labels":{"app":null}}})");
  const auto left = std::to_string(model.version());
  EXPECT_THAT(watching.sent->back(), HasSubstr(R"("resourceVersion":")" + left));
  EXPECT_THAT(watching.sent->back(), HasSubstr(R"("app":"y")"));  // as it was seen last
  ask("PATCH", kThings + "/b", R"({"metadata":{"labels":{"app":"x"}}})");
  ask("DELETE", kThings + "/a");
  EXPECT_THAT(events(watching), ElementsAre("ADDED a", "MODIFIED a", "DELETED a", "ADDED b"));
  // Whoever comes later hears the same.
  EXPECT_THAT(events(watch(kThings + "?watch=true&" + app + "&resourceVersion=" + from)),
              ElementsAre("MODIFIED a", "DELETED a", "ADDED b"));
  EXPECT_THAT(events(watch(kThings + "?watch=true&labelSelector=app%3Dy")), ElementsAre());
}

TEST_F(ModelTest, FieldsSelect) {
  const auto selects = [&](std::string_view fields) {
    return Selection("", "", fields)
        .matches(*parse_json(R"({"regarding":{"kind":"Job"},"reason":"FailedCreate"})"));
  };
  EXPECT_TRUE(selects("regarding.kind=Job,reason=FailedCreate"));
  EXPECT_FALSE(selects("regarding.kind=Pod,reason=FailedCreate"));
  EXPECT_TRUE(selects("regarding.kind!=Pod"));
  EXPECT_FALSE(selects("series.count=1"));
}

TEST_F(ModelTest, NamespacesSelect) {
  make("a");
  EXPECT_THAT(events(watch("/apis/example.com/v1/things?watch=true")), ElementsAre("ADDED a"));
  EXPECT_THAT(events(watch("/apis/example.com/v1/namespaces/other/things?watch=true")),
              ElementsAre());
}

TEST_F(ModelTest, BuiltInKindsAreToldInProtobufToWhoAsks) {
  const std::string accept = "application/vnd.kubernetes.protobuf;stream=watch,application/json";
  const auto watching = watch(kMaps + "?watch=true", accept);
  EXPECT_THAT(watching.answer.headers.get("Content-Type"), HasSubstr("protobuf"));
  const std::string object =
      R"({"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"c"},"data":{"k":"v"}})";
  const auto made = model.handle(
      {.method = "POST",
       .target = kMaps,
       .headers = {{"Content-Type", std::string(kube::kProtobuf)},
                   {"Accept", "application/vnd.kubernetes.protobuf;as=PartialObjectMetadata"}},
       .body = *kube::encode_protobuf(*parse_json(object))},
      "test");
  EXPECT_EQ(made.status, 201);
  const auto metadata = *kube::decode_protobuf(made.body);
  EXPECT_EQ(string_or(find(metadata, "kind")), "PartialObjectMetadata");
  EXPECT_EQ(string_or(at(metadata, "metadata", "name")), "c");
  EXPECT_EQ(find(metadata, "data"), nullptr);
  ASSERT_EQ(watching.sent->size(), 1U);
  EXPECT_THAT(*kube::json_of_watch_event(watching.sent->back().substr(4)),
              AllOf(HasSubstr(R"("ADDED")"), HasSubstr(R"("k":"v")")));
  EXPECT_THAT(watch(kThings + "?watch=true", accept).answer.headers.get("Content-Type"),
              Not(HasSubstr("protobuf")));
}

// ---- admission ----------------------------------------------------------------------------------

Json webhook(std::string_view path, JsonArray operations) {
  const JsonObject rule{{"apiGroups", JsonArray{"example.com"}},
                        {"resources", JsonArray{"things"}},
                        {"operations", std::move(operations)}};
  return JsonObject{{"name", path},
                    {"clientConfig", JsonObject{{"service", JsonObject{{"path", path}}}}},
                    {"rules", JsonArray{rule}}};
}

struct AdmissionTest : ModelTest {
  AdmissionTest() {
    auto admission = std::make_shared<runtime::Admission>();
    admission->add("/set", [](const runtime::Admitted& request) -> Result<Json> {
      Json object = request.object;
      ensure_object(object.as_object(), "spec")["set"] = true;
      return object;
    });
    admission->add("/check", [](const runtime::Admitted& request) -> Result<Json> {
      if (int_or(at(request.object, "spec", "n")) < int_or(at(request.before, "spec", "n"))) {
        return fail(Error{.reason = Reason::kInvalid,
                          .message = "less than before",
                          .causes = {{.field = "spec.n", .message = "less"}}});
      }
      return request.object;
    });
    const JsonArray mutating{webhook("/set", {"CREATE"})};
    const JsonArray validating{webhook("/check", {"CREATE", "UPDATE"})};
    guarded = std::make_unique<ApiModel>(
        std::vector<ServedKind>{{kThing, true}, {kConfigMap, false}},
        WebhookConfigurations{JsonObject{{"webhooks", mutating}},
                              JsonObject{{"webhooks", validating}}, admission});
  }
  std::unique_ptr<ApiModel> guarded;
  static constexpr std::string_view kThingA = R"({"metadata":{"name":"a"},"spec":{"n":2}})";
};

TEST_F(AdmissionTest, ChangesAndRefuses) {
  const auto made = guarded->ask("test", "POST", kThings, *parse_json(kThingA));
  EXPECT_EQ(made.status, 201);
  EXPECT_TRUE(bool_or(at(*parse_json(made.body), "spec", "set")));
  const auto refused =
      guarded->ask("test", "PATCH", kThings + "/a", *parse_json(R"({"spec":{"n":1}})"));
  EXPECT_EQ(refused.status, 422);
  EXPECT_THAT(refused.body, HasSubstr("denied the request: less than before"));
  // A status is no business of theirs.
  EXPECT_EQ(
      guarded->ask("test", "PATCH", kThings + "/a/status", *parse_json(R"({"status":{}})")).status,
      200);
}

TEST_F(AdmissionTest, IsRefusedWhileAWebhookIsDown) {
  bool down = true;
  guarded->set_webhooks_down([&down] { return down; });
  const auto refused = guarded->ask("test", "POST", kThings, *parse_json(kThingA));
  EXPECT_EQ(refused.status, 500);
  EXPECT_EQ(reason(refused), "InternalError");
  EXPECT_EQ(guarded->ask("test", "POST", kMaps, *parse_json(kThingA)).status, 201);
  down = false;
  EXPECT_EQ(guarded->ask("test", "POST", kThings, *parse_json(kThingA)).status, 201);
}

}  // namespace
}  // namespace grapnel::simulation
