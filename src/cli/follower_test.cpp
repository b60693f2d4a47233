#include "cli/follower.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <deque>

namespace grapnel::cli {
namespace {

using Pieces = std::vector<std::string>;

// A body that gives these pieces, and then ends as it should, breaks, or stays open.
class Body final : public http::BodyStream {
 public:
  enum class End { kWhole, kCut, kOpen };
  Body(Pieces pieces, End end) : pieces_(std::move(pieces)), end_(end) {}
  Task<Result<std::string>> read() override {
    if (next_ < pieces_.size()) co_return pieces_[next_++];
    if (end_ == End::kOpen) co_await system_clock().sleep(hours(1));
    if (end_ == End::kCut) co_return fail(Reason::kTransport, "the connection broke");
    co_return std::string();
  }

 private:
  Pieces pieces_;
  size_t next_ = 0;
  End end_;
};

struct Log {
  Pieces pieces;
  Body::End end = Body::End::kWhole;
};

std::string pod(std::string_view phase) {
  return fmt::format(
      R"({{"apiVersion":"v1","kind":"Pod","metadata":{{"name":"p","namespace":"a",)"
      R"("uid":"11111111-1111-1111-1111-111111111111","resourceVersion":"5",)"
      R"("labels":{{"grapnel.dev/experiment":"x","grapnel.dev/component":"worker",)"
      R"("batch.kubernetes.io/job-completion-index":"0"}}}},"status":{{"phase":"{}"}}}})",
      phase);
}

std::string added(std::string_view object) {
  return fmt::format("{{\"type\":\"ADDED\",\"object\":{}}}\n", object);
}

std::string end_of_initial_events() {
  return R"({"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"9","annotations":)"
         R"({"k8s.io/initial-events-end":"true"}}}})"
         "\n";
}

// An experiment that has ended, with one process.
class Server final : public http::Transport {
 public:
  std::vector<std::string> asked;  // for logs
  std::deque<Log> logs;            // one for each time it is asked for
  Pieces pod_events;               // of the watch
  std::string pods = R"({"items":[)" + pod("Succeeded") + "]}";

  Task<Result<http::Response>> send(const http::Request& request) override {
    if (request.target.find("/podlogs") != std::string::npos) {
      co_return http::Response{.status = 404, .body = "404 page not found"};
    }
    co_return http::Response{.status = 200, .body = pods};
  }

  Task<Result<http::StreamResponse>> open(const http::Request& request) override {
    const std::string& target = request.target;
    http::StreamResponse answer{.status = 200};
    if (target.find("/log?") != std::string::npos) {
      asked.push_back(target.substr(target.find("/log?")));
      Log log;
      if (!logs.empty()) {
        log = std::move(logs.front());
        logs.pop_front();
      }
      answer.body = std::make_unique<Body>(log.pieces, log.end);
    } else if (target.find("/experiments") != std::string::npos) {
      const std::string ended =
          R"({"apiVersion":"grapnel.dev/v1alpha1","kind":"Experiment","metadata":{"name":"x",)"
          R"("namespace":"a","resourceVersion":"7"},"spec":{"operator":"jax","image":"i",)"
          R"("command":"c","types":{}},"status":{"phase":"Succeeded","message":"",)"
          R"("endTime":"2026-05-04T10:00:09Z"}})";
      answer.body =
          std::make_unique<Body>(Pieces{added(ended), end_of_initial_events()}, Body::End::kOpen);
    } else {
      answer.body = std::make_unique<Body>(pod_events, Body::End::kOpen);
    }
    co_return answer;
  }
};

struct FollowerTest : testing::Test {
  std::shared_ptr<Server> server = std::make_shared<Server>();
  std::string printed;

  void follow(FollowOptions options = {}) {
    boost::asio::io_context loop;
    kube::Client client(server, nullptr, {.server = "http://k8s"});
    char* text = nullptr;
    size_t length = 0;
    std::FILE* out = ::open_memstream(&text, &length);
    LogPrinter printer({.out = out, .notes = out});
    Follower follower(loop.get_executor(), client, system_clock(), {Interned("a"), "x"},
                      std::move(options), printer);
    bool ended = false;
    const auto running = spawn(loop.get_executor(), [](Follower& f, bool& out_ended) -> Task<> {
      const auto status = co_await f.run();
      out_ended = status && *status && (*status)->phase == api::Phase::Succeeded;
    }(follower, ended));
    const Instant deadline = system_clock().instant() + seconds(20);
    while (!running.done() && system_clock().instant() < deadline) loop.run_for(milliseconds(5));
    EXPECT_TRUE(ended);
    std::fclose(out);
    printed.assign(text, length);
    std::free(text);
  }
};

constexpr std::string_view kOne = "2026-05-04T10:00:01Z one\n";
constexpr std::string_view kTwo = "2026-05-04T10:00:02Z two\n";

// The order in which two watches bring their news says nothing.
TEST_F(FollowerTest, ReadsProcessesThatTheirWatchHasNotBrought) {
  server->logs = {{.pieces = {std::string(kOne), std::string(kTwo)}}};
  follow();
  EXPECT_EQ(printed, "worker-0 | one\nworker-0 | two\n");
}

TEST_F(FollowerTest, ReadsEachProcessOnce) {
  server->pod_events = {added(pod("Succeeded")), end_of_initial_events()};
  server->logs = {{.pieces = {std::string(kOne)}}, {.pieces = {"twice\n"}}};
  follow();
  EXPECT_EQ(printed, "worker-0 | one\n");
}

TEST_F(FollowerTest, PassesOverWhatWasPrintedBefore) {
  server->logs = {{.pieces = {std::string(kOne)}}};
  follow({.printed = {"11111111-1111-1111-1111-111111111111"}});
  EXPECT_EQ(printed, "");
}

TEST_F(FollowerTest, GoesOnWhereAConnectionWasCut) {
  server->logs = {
      {.pieces = {std::string(kOne), "2026-05-04T10:00:02Z tw"}, .end = Body::End::kCut},
      {.pieces = {std::string(kOne), std::string(kTwo)}}};
  follow();
  EXPECT_EQ(printed, "worker-0 | one\nworker-0 | two\n");
  ASSERT_EQ(server->asked.size(), 2);
  EXPECT_EQ(server->asked[1],
            "/log?follow=true&timestamps=true&sinceTime=2026-05-04T10%3A00%3A01Z");
}

// A node that is restarted ends its streams well.
TEST_F(FollowerTest, AStreamThatEndsBeforeItsProcessIsNotTheWholeLog) {
  server->pod_events = {added(pod("Running")), end_of_initial_events()};
  server->logs = {{.pieces = {std::string(kOne)}},
                  {.pieces = {std::string(kOne), std::string(kTwo)}}};
  follow();
  EXPECT_EQ(printed, "worker-0 | one\nworker-0 | two\n");
}

TEST_F(FollowerTest, AListThatMakesNoSenseIsSaid) {
  server->pods = R"({"items":7})";
  follow();
  EXPECT_EQ(printed,
            "its processes cannot be listed: the answer is no list: its items are no array\n");
  server->pods = R"({"items":[7, null, {"metadata": []}]})";
  follow();
  EXPECT_EQ(printed, "");
}

}  // namespace
}  // namespace grapnel::cli
