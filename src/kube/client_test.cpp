#include "kube/client.h"

#include <gmock/gmock.h>

#include "kube/fake_test.h"
#include "kube/fake_websocket_test.h"
#include "kube/types/protobuf.h"

namespace grapnel::kube {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// Counts up with each renewal; gives up after as many as it was told.
class CountingCredentials final : public Credentials {
 public:
  explicit CountingCredentials(int renewals) : left_(renewals) {}
  Task<Result<>> authorize(http::Request& request) override {
    if (broken) co_return fail(Reason::kSystem, "no plugin");
    request.headers.set("Authorization", "Bearer " + std::to_string(serial_));
    co_return Result<>();
  }
  bool renew(std::string_view refused) override {
    EXPECT_EQ(refused, "Bearer " + std::to_string(serial_));
    if (left_ == 0) return false;
    --left_;
    ++serial_;
    return true;
  }
  bool broken = false;

 private:
  int left_;
  int serial_ = 1;
};

struct ClientTest : LoopTest {
  std::shared_ptr<FakeTransport> transport = std::make_shared<FakeTransport>();
  std::vector<std::string> observed;
  std::unique_ptr<Client> client_ = with({});

  std::unique_ptr<Client> with(std::shared_ptr<Credentials> credentials, bool protobuf = false) {
    return std::make_unique<Client>(
        transport, std::move(credentials),
        ClientOptions{.server = "https://host:6443/prefix/",
                      .protobuf = protobuf,
                      .observe = [this](std::string_view method, int code, Duration) {
                        observed.push_back(fmt::format("{} {}", method, code));
                      }});
  }
  Client& client() { return *client_; }
  void answer(int code, std::string body) {
    transport->answers.push_back(http::Response{.status = code, .body = std::move(body)});
  }
  const http::Request& asked() const { return transport->asked.back(); }
  // Method, and what follows the server.
  std::string line() const {
    EXPECT_TRUE(asked().target.starts_with("https://host:6443/prefix/"));
    return asked().method + " " + asked().target.substr(24);
  }
  Json body() const { return parse_json(asked().body).value(); }
};

Json object(std::string_view ns, std::string_view name) {
  return JsonObject{{"metadata", JsonObject{{"namespace", ns}, {"name", name}}}};
}

TEST_F(ClientTest, Reads) {
  answer(200, R"({"kind":"Pod","n":9007199254740993})");
  const auto pod = run(client().get(kinds::kPod, {.ns = "a", .name = "b"}));
  EXPECT_EQ(int_or(find(pod.value(), "n")), 9007199254740993);
  EXPECT_EQ(line(), "GET /api/v1/namespaces/a/pods/b");
  EXPECT_EQ(asked().headers.get("Accept"), "application/json");
  EXPECT_EQ(asked().headers.get("User-Agent"), "grapnel");
  EXPECT_FALSE(asked().headers.has("Content-Type"));

  run(client().list(kinds::kJob, {.ns = "a",
                                  .label_selector = "x=y",
                                  .field_selector = "metadata.name=z",
                                  .resource_version = "0",
                                  .resource_version_match = "NotOlderThan",
                                  .limit = 10,
                                  .continue_token = "t/+="}))
      .value();
  EXPECT_EQ(line(),
            "GET /apis/batch/v1/namespaces/a/jobs?labelSelector=x%3Dy&fieldSelector=metadata.name%"
            "3Dz&resourceVersion=0&resourceVersionMatch=NotOlderThan&continue=t%2F%2B%3D&limit=10");
  EXPECT_THAT(std::string(asked().headers.get("Accept")),
              HasSubstr("drop=metadata.managedFields,application/json"));
}

TEST_F(ClientTest, Watches) {
  answer(200, "{}\n{}\n");
  auto stream = run(client().open_watch(
      kinds::kPod, {.label_selector = "x", .resource_version = "12", .timeout = seconds(300)}));
  EXPECT_EQ(run(stream.value()->read()).value(), "{}\n{}\n");
  EXPECT_EQ(line(),
            "GET /api/v1/pods?watch=true&allowWatchBookmarks=true&labelSelector=x&resourceVersion="
            "12&timeoutSeconds=300");
  EXPECT_EQ(asked().idle_timeout, Duration(seconds(305)));

  run(client().open_watch(
          kinds::kPod,
          {.send_initial_events = true, .timeout = milliseconds(1), .idle_timeout = seconds(90)}))
      .value();
  EXPECT_EQ(line(),
            "GET /api/v1/pods?watch=true&allowWatchBookmarks=true&sendInitialEvents=true&"
            "resourceVersionMatch=NotOlderThan&timeoutSeconds=1");
  EXPECT_EQ(asked().idle_timeout, Duration(seconds(90)));
}

TEST_F(ClientTest, ARefusedWatchIsTyped) {
  answer(410, R"({"kind":"Status","reason":"Expired","message":"too old"})");
  const auto stream = run(client().open_watch(kinds::kPod, {}));
  ASSERT_FALSE(stream);
  EXPECT_EQ(stream.error().reason, Reason::kExpired);
  EXPECT_EQ(stream.error().code, 410);
  const auto list = run(client().open_list(kinds::kPod, {}));
  EXPECT_EQ(list.error().message, "too old");
}

TEST_F(ClientTest, Writes) {
  answer(201, "{}");
  run(client().create(kinds::kPod, object("a", "b"))).value();
  EXPECT_EQ(line(), "POST /api/v1/namespaces/a/pods?fieldManager=grapnel");
  EXPECT_EQ(asked().headers.get("Content-Type"), "application/json");
  EXPECT_EQ(body(), object("a", "b"));

  run(client().update(kinds::kJob, object("a", "b"), "status",
                      {.field_manager = "me", .dry_run = true, .field_validation = "Strict"}))
      .value();
  EXPECT_EQ(line(),
            "PUT /apis/batch/v1/namespaces/a/jobs/b/status?fieldManager=me&dryRun=All&"
            "fieldValidation=Strict");

  run(client().create(kinds::kNamespace, object("", "n"))).value();
  EXPECT_EQ(line(), "POST /api/v1/namespaces?fieldManager=grapnel");
}

TEST_F(ClientTest, Patches) {
  answer(200, "{}");
  struct Case {
    PatchType type;
    std::string content_type;
    std::string query;
  };
  for (const Case& c : std::vector<Case>{
           {PatchType::kMerge, "application/merge-patch+json", "?fieldManager=grapnel"},
           {PatchType::kJson, "application/json-patch+json", "?fieldManager=grapnel"},
           {PatchType::kStrategic, "application/strategic-merge-patch+json",
            "?fieldManager=grapnel"},
           {PatchType::kApply, "application/apply-patch+yaml", "?fieldManager=grapnel&force=true"},
       }) {
    run(client().patch(kinds::kPod, {"a", "b", "status"}, c.type, JsonObject{{"x", 1}},
                       {.force = true}))
        .value();
    EXPECT_EQ(line(), "PATCH /api/v1/namespaces/a/pods/b/status" + c.query);
    EXPECT_EQ(asked().headers.get("Content-Type"), c.content_type);
    EXPECT_EQ(asked().body, R"({"x":1})");
  }
}

TEST_F(ClientTest, Deletes) {
  answer(200, "{}");
  run(client().remove(kinds::kPod, {"a", "b", ""},
                      {.uid = Uid("0f4c3c5e-6c22-4d5b-9d0e-1d2b8b7b0001"),
                       .resource_version = 7,
                       .propagation = "Foreground",
                       .grace_seconds = 0,
                       .dry_run = true}))
      .value();
  EXPECT_EQ(line(), "DELETE /api/v1/namespaces/a/pods/b");
  EXPECT_TRUE(equal(body(), parse_json(R"({"kind":"DeleteOptions","apiVersion":"v1",
      "preconditions":{"uid":"0f4c3c5e-6c22-4d5b-9d0e-1d2b8b7b0001","resourceVersion":"7"},
      "propagationPolicy":"Foreground","gracePeriodSeconds":0,"dryRun":["All"]})")
                                .value()))
      << asked().body;

  run(client().remove_collection(kinds::kPod, {.ns = "a", .label_selector = "x=y"})).value();
  EXPECT_EQ(line(), "DELETE /api/v1/namespaces/a/pods?labelSelector=x%3Dy");
  EXPECT_EQ(body().as_object().size(), 2U);
}

TEST_F(ClientTest, BuiltInKindsGoAsProtobufWhereTheServerSpeaksIt) {
  client_ = with({}, true);
  Json pod = object("a", "b");
  pod.as_object()["apiVersion"] = "v1";
  pod.as_object()["kind"] = "Pod";
  transport->answers.push_back(
      http::Response{.status = 201,
                     .headers = {{"Content-Type", std::string(kProtobuf)}},
                     .body = encode_protobuf(parse_json(R"({"apiVersion": "meta.k8s.io/v1",
          "kind": "PartialObjectMetadata", "metadata": {"resourceVersion": "7"}})")
                                                 .value())
                                 .value()});
  const auto made = run(client().create(kinds::kPod, pod, {.metadata_only = true}));
  EXPECT_EQ(string_or(at(made.value(), "metadata", "resourceVersion")), "7");
  EXPECT_EQ(asked().headers.get("Content-Type"), kProtobuf);
  EXPECT_TRUE(asked().headers.get("Accept").starts_with(std::string(kProtobuf) + ";as=Partial"));
  EXPECT_TRUE(equal(decode_protobuf(asked().body).value(), pod));

  // A field of a Kubernetes newer than our tables must not get lost on the way.
  pod.as_object()["spec"] = JsonObject{{"fromTheFuture", 1}};
  run(client().create(kinds::kPod, pod)).value();
  EXPECT_EQ(asked().headers.get("Content-Type"), "application/json");
  EXPECT_TRUE(equal(body(), pod));

  run(client().create(kinds::kJobSet, object("a", "b"), {.metadata_only = true})).value();
  EXPECT_EQ(asked().headers.get("Content-Type"), "application/json");
  EXPECT_TRUE(asked().headers.get("Accept").starts_with("application/json;as=Partial"));

  transport->answers.assign({http::Response{
      .status = 409,
      .headers = {{"Content-Type", std::string(kProtobuf)}},
      .body = encode_protobuf(parse_json(R"({"apiVersion": "meta.k8s.io/v1", "kind": "Status",
                          "status": "Failure", "message": "no", "reason": "AlreadyExists",
                          "code": 409})")
                                  .value())
                  .value()}});
  const auto refused = run(client().create(kinds::kPod, object("a", "b")));
  EXPECT_TRUE(refused.error().is(Reason::kAlreadyExists));
  EXPECT_EQ(refused.error().message, "no");
  const auto watch = run(client().open_watch(kinds::kPod, {}));
  EXPECT_TRUE(watch.error().is(Reason::kAlreadyExists));
  EXPECT_EQ(asked().headers.get("Accept"),
            "application/vnd.kubernetes.protobuf;stream=watch,application/json");
}

TEST_F(ClientTest, WhatIsNotFullyNamedIsNeverSent) {
  answer(200, "{}");
  EXPECT_EQ(run(client().remove(kinds::kPod, {"a", "", ""})).error().reason, Reason::kUsage);
  EXPECT_EQ(run(client().remove(kinds::kPod, {"", "b", ""})).error().reason, Reason::kUsage);
  EXPECT_EQ(run(client().remove_collection(kinds::kPod, {})).error().reason, Reason::kUsage);
  EXPECT_EQ(run(client().create(kinds::kPod, object("", "b"))).error().reason, Reason::kUsage);
  EXPECT_EQ(run(client().update(kinds::kPod, Json("text"))).error().reason, Reason::kUsage);
  EXPECT_EQ(run(client().get(kinds::kNode, {})).error().reason, Reason::kUsage);
  EXPECT_EQ(run(client().raw({.target = "version"})).error().reason, Reason::kUsage);
  EXPECT_EQ(run(client().exec({"a", "b", ""}, {})).error().reason, Reason::kUsage);
  EXPECT_EQ(run(client().exec({"a", "b", ""}, {.command = {"ls"}})).error().reason, Reason::kUsage);
  EXPECT_TRUE(transport->asked.empty());
}

TEST_F(ClientTest, Exec) {
  std::vector<http::Request> opened;
  std::vector<int> codes{401, 0};
  std::vector<std::string> offered;
  const OpenWebSocket open =
      [&](http::Request request,
          std::vector<std::string> protocols) -> Task<Result<std::unique_ptr<http::WebSocket>>> {
    offered = protocols;
    opened.push_back(std::move(request));
    const int code = codes.at(opened.size() - 1);
    if (code == 0) co_return std::make_unique<FakeWebSocket>(executor);
    co_return fail(Error{.message = R"({"kind":"Status","reason":"NotFound","message":"gone"})",
                         .code = code});
  };
  Client client(transport, std::make_shared<CountingCredentials>(1),
                {.server = "https://host", .open_websocket = open});
  auto socket = run(client.exec(
      {"a", "b", ""}, {.container = "c", .command = {"sh", "-c", "echo a&b"}, .stdin_open = true}));
  ASSERT_TRUE(socket) << socket.error().message;
  ASSERT_EQ(opened.size(), 2U) << "once more after a 401";
  EXPECT_EQ(opened[1].target,
            "https://host/api/v1/namespaces/a/pods/b/exec?container=c&stdin=true&stdout=true&"
            "stderr=true&command=sh&command=-c&command=echo%20a%26b");
  EXPECT_EQ(opened[1].headers.get("Authorization"), "Bearer 2");
  EXPECT_THAT(offered, ElementsAre("v5.channel.k8s.io"));

  codes = {0, 0, 404};
  const auto refused = run(client.exec({"a", "b", ""}, {.command = {"ls"}, .tty = true}));
  EXPECT_THAT(opened[2].target, testing::EndsWith("/exec?stdout=true&tty=true&command=ls"));
  EXPECT_EQ(refused.error().reason, Reason::kNotFound);
  EXPECT_EQ(refused.error().message, "gone");

  codes = {0, 0, 0, 0};
  run(client.port_forward({"a", "b", ""})).value();
  EXPECT_THAT(opened[3].target, testing::EndsWith("/api/v1/namespaces/a/pods/b/portforward"));
  EXPECT_THAT(offered, ElementsAre("SPDY/3.1+portforward.k8s.io"));
  EXPECT_EQ(opened[3].headers.get("Accept"), "*/*");
}

TEST_F(ClientTest, Logs) {
  answer(200, "line\n");
  run(client().logs({"a", "b", ""}, {.container = "c",
                                     .follow = true,
                                     .previous = true,
                                     .timestamps = true,
                                     .tail_lines = 0,
                                     .since = milliseconds(10)}))
      .value();
  EXPECT_EQ(line(),
            "GET /api/v1/namespaces/a/pods/b/log?container=c&follow=true&previous=true&timestamps="
            "true&tailLines=0&sinceSeconds=1");
  EXPECT_EQ(asked().idle_timeout, std::nullopt);
  EXPECT_EQ(asked().timeout, Duration(hours(24)));
  run(client().logs({"a", "b", ""}, {})).value();
  EXPECT_EQ(line(), "GET /api/v1/namespaces/a/pods/b/log");
  EXPECT_NE(asked().idle_timeout, std::nullopt);
  run(client().logs({"a", "b", ""}, {.since = hours(1), .since_time = Time(milliseconds(1500))}))
      .value();
  EXPECT_EQ(line(), "GET /api/v1/namespaces/a/pods/b/log?sinceTime=1970-01-01T00%3A00%3A01Z");
}

TEST_F(ClientTest, FailedWritesAreAmbiguousWhereTheyMayHaveHappened) {
  struct Case {
    Result<http::Response> answer;
    bool ambiguous;
    Reason reason;
  };
  const Failure lost(Error{.reason = Reason::kTransport, .message = "reset", .ambiguous = true});
  const Failure refused(Error{.reason = Reason::kTransport, .message = "refused"});
  for (const Case& c : std::vector<Case>{
           {lost, true, Reason::kTransport},
           {refused, false, Reason::kTransport},
           {http::Response{.status = 200, .body = "{\"a\":"}, true, Reason::kDecode},
           {http::Response{.status = 200, .body = "[]"}, true, Reason::kDecode},
           {http::Response{.status = 201, .body = ""}, true, Reason::kDecode},
           {http::Response{.status = 500, .body = ""}, true, Reason::kInternalError},
           {http::Response{.status = 502, .body = ""}, true, Reason::kServiceUnavailable},
           {http::Response{.status = 504, .body = ""}, true, Reason::kTimeout},
           {http::Response{.status = 429, .body = ""}, false, Reason::kTooManyRequests},
           {http::Response{.status = 409, .body = ""}, false, Reason::kConflict},
       }) {
    transport->answers = {c.answer};
    const auto write = run(client().create(kinds::kPod, object("a", "b")));
    ASSERT_FALSE(write);
    EXPECT_EQ(write.error().reason, c.reason);
    EXPECT_EQ(write.error().ambiguous, c.ambiguous) << write.error().message;
    const auto read = run(client().get(kinds::kPod, {"a", "b", ""}));
    ASSERT_FALSE(read);
    EXPECT_EQ(read.error().reason, c.reason);
    EXPECT_FALSE(read.error().ambiguous) << read.error().message;
    if (c.reason != Reason::kTransport) {
      EXPECT_THAT(read.error().message, HasSubstr("GET /api/v1/namespaces/a/pods/b"));
    }
  }
}

TEST_F(ClientTest, RenewsItsCredentialsOnceAfter401) {
  client_ = with(std::make_shared<CountingCredentials>(9));
  answer(401, "");
  answer(200, "{}");
  run(client().create(kinds::kPod, object("a", "b"))).value();
  ASSERT_EQ(transport->asked.size(), 2U);
  EXPECT_EQ(transport->asked[0].headers.get("Authorization"), "Bearer 1");
  EXPECT_EQ(transport->asked[1].headers.get("Authorization"), "Bearer 2");
  EXPECT_EQ(transport->asked[1].body, transport->asked[0].body);
  EXPECT_THAT(observed, ElementsAre("POST 401", "POST 200"));

  transport->answers = {http::Response{.status = 401}};
  EXPECT_EQ(run(client().get(kinds::kPod, {"a", "b", ""})).error().reason, Reason::kUnauthorized);
  EXPECT_EQ(transport->asked.size(), 4U);
  EXPECT_EQ(run(client().open_watch(kinds::kPod, {})).error().reason, Reason::kUnauthorized);
  EXPECT_EQ(transport->asked.size(), 6U);
}

TEST_F(ClientTest, WithoutAnythingToRenew401IsFinal) {
  answer(401, "");
  EXPECT_FALSE(run(client().get(kinds::kPod, {"a", "b", ""})).has_value());
  client_ = with(std::make_shared<CountingCredentials>(0));
  EXPECT_FALSE(run(client().get(kinds::kPod, {"a", "b", ""})).has_value());
  EXPECT_EQ(transport->asked.size(), 2U);
}

TEST_F(ClientTest, BrokenCredentialsAreAnErrorAndNothingIsSent) {
  auto credentials = std::make_shared<CountingCredentials>(0);
  credentials->broken = true;
  client_ = with(credentials);
  const auto write = run(client().create(kinds::kPod, object("a", "b")));
  EXPECT_EQ(write.error().message, "no plugin");
  EXPECT_FALSE(write.error().ambiguous);
  EXPECT_TRUE(transport->asked.empty());
}

TEST_F(ClientTest, RawGivesEveryAnswerAndRenewsOnlyForTheServerItself) {
  client_ = with(std::make_shared<CountingCredentials>(9));
  answer(401, R"({"detail":"log in to the dashboard"})");
  auto answered = run(client().raw({.method = "POST", .target = "/api/v1/x/proxy/login"}));
  EXPECT_EQ(answered.value().status, 401);
  EXPECT_EQ(transport->asked.size(), 1U);
  EXPECT_EQ(line(), "POST /api/v1/x/proxy/login");

  transport->answers = {http::Response{.status = 401, .body = R"({"kind":"Status"})"},
                        http::Response{.status = 503, .body = "not ready"}};
  answered = run(client().raw({.target = "/readyz?verbose"}));
  EXPECT_EQ(answered.value().status, 503);
  EXPECT_EQ(transport->asked.size(), 3U);
}

TEST_F(ClientTest, ObservesFailuresAsCodeZero) {
  transport->answers = {fail(Reason::kTransport, "no route")};
  run(client().get(kinds::kPod, {"a", "b", ""})).error();
  EXPECT_THAT(observed, ElementsAre("GET 0"));
}

}  // namespace
}  // namespace grapnel::kube
