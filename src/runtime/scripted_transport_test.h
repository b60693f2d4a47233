// A server that gives prepared answers in order, or those of a function, and remembers what it was
// asked.
#pragma once

#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/async.h"
#include "http/client.h"

namespace grapnel::runtime {

struct ScriptedAnswer {
  enum class End { kWhole, kCut, kSilent };
  int status = 200;
  std::vector<std::string> pieces;
  End end = End::kWhole;
  std::optional<Duration> silent_for = std::nullopt;  // before a stream ends well
  bool unreachable = false;                           // no answer at all
  bool ambiguous = false;  // and nobody knows whether the request took effect
  http::Headers headers = {};
};

class ScriptedTransport final : public http::Transport {
 public:
  explicit ScriptedTransport(Clock& clock) : clock_(clock) {}

  void answer(ScriptedAnswer answer) { answers_.push_back(std::move(answer)); }
  void answer(std::string body) { answer(ScriptedAnswer{.pieces = {std::move(body)}}); }
  static ScriptedAnswer refusal(int status, std::string reason, std::string message = "refused") {
    return {
        .status = status,
        .pieces = {R"({"kind":"Status","status":"Failure","reason":")" + reason +
                   R"(","message":")" + message + R"(","code":)" + std::to_string(status) + "}"}};
  }
  void refuse(int status, std::string reason, std::string message = "refused") {
    answer(refusal(status, std::move(reason), std::move(message)));
  }
  // Asked first: "GET /api/v1/pods?limit=500" for an answer.
  using Serve = std::function<std::optional<ScriptedAnswer>(std::string_view request)>;
  void serve(Serve serve) { serve_ = std::move(serve); }

  // "GET /api/v1/pods?limit=500", with the body after it where there is one.
  std::vector<std::string> asked;

  Task<Result<http::Response>> send(const http::Request& request) override {
    auto next = take(request);
    if (next.unreachable) co_return no_answer(next);
    http::Response response{.status = next.status, .headers = next.headers};
    for (const auto& piece : next.pieces) response.body += piece;
    co_await clock_.sleep(milliseconds(1));
    co_return response;
  }

  Task<Result<http::StreamResponse>> open(const http::Request& request) override {
    auto next = take(request);
    if (next.unreachable) co_return no_answer(next);
    co_await clock_.sleep(milliseconds(1));
    http::StreamResponse response{.status = next.status, .headers = next.headers};
    response.body = std::make_unique<Body>(clock_, std::move(next), request.idle_timeout);
    co_return response;
  }

 private:
  class Body final : public http::BodyStream {
   public:
    Body(Clock& clock, ScriptedAnswer answer, std::optional<Duration> idle)
        : clock_(clock), answer_(std::move(answer)), idle_(idle) {}
    Task<Result<std::string>> read() override {
      co_await clock_.sleep(milliseconds(1));
      if (at_ < answer_.pieces.size()) co_return answer_.pieces[at_++];
      if (answer_.silent_for) co_await clock_.sleep(*answer_.silent_for);
      if (answer_.end == ScriptedAnswer::End::kWhole) co_return std::string();
      if (answer_.end == ScriptedAnswer::End::kSilent) {
        co_await clock_.sleep(idle_.value_or(hours(1000)));
      }
      co_return fail(Reason::kTransport, "the connection broke");
    }

   private:
    Clock& clock_;
    ScriptedAnswer answer_;
    std::optional<Duration> idle_;
    size_t at_ = 0;
  };

  static Failure no_answer(const ScriptedAnswer& answer) {
    return fail(Error{.reason = Reason::kTransport,
                      .message = "connection reset",
                      .ambiguous = answer.ambiguous});
  }

  ScriptedAnswer take(const http::Request& request) {
    std::string target = request.target.substr(request.target.find('/', 8));
    asked.push_back(request.method + " " + target +
                    (request.body.empty() ? "" : " " + request.body));
    if (serve_) {
      if (auto served = serve_(asked.back())) return *std::move(served);
    }
    if (answers_.empty()) return {.end = ScriptedAnswer::End::kSilent};
    auto next = std::move(answers_.front());
    answers_.pop_front();
    return next;
  }

  Clock& clock_;
  std::deque<ScriptedAnswer> answers_;
  Serve serve_;
};

}  // namespace grapnel::runtime
