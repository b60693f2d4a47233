// For the tests of this folder: a loop to run Tasks on, a clock that is set by hand, and a
// transport that answers from a list.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <boost/asio/io_context.hpp>
#include <deque>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/async.h"
#include "http/client.h"

namespace grapnel::kube {

// A path of this process alone: the suite may run several times at once on a machine.
inline std::filesystem::path unique_folder() {
  return std::filesystem::path(testing::TempDir()) / ("grapnel_kube_" + std::to_string(::getpid()));
}

struct LoopTest : testing::Test {
  boost::asio::io_context loop;
  Executor executor = loop.get_executor();

  template <class T>
  T run(Task<T> task) {
    std::optional<T> result;
    auto main = spawn(executor, [](Task<T> inner, std::optional<T>& out) -> Task<> {
      out = co_await std::move(inner);
    }(std::move(task), result));
    loop.restart();
    const Instant deadline = system_clock().instant() + seconds(20);
    while (!main.done() && system_clock().instant() < deadline) loop.run_for(milliseconds(5));
    if (!result) throw std::runtime_error("still waiting after 20 s");
    return std::move(*result);
  }
};

class ManualClock final : public Clock {
 public:
  Time now() const override { return now_; }
  Instant instant() const override { return Instant(now_.time_since_epoch()); }
  Task<> sleep_until(Instant) override { return system_clock().sleep(hours(1)); }
  void advance(Duration length) { now_ += length; }

 private:
  Time now_{seconds(1'800'000'000)};
};

class StringStream final : public http::BodyStream {
 public:
  explicit StringStream(std::string text) : text_(std::move(text)) {}
  Task<Result<std::string>> read() override { co_return std::exchange(text_, ""); }

 private:
  std::string text_;
};

// Answers one after the other, the last one again and again, and keeps what it was asked.
class FakeTransport final : public http::Transport {
 public:
  std::deque<Result<http::Response>> answers;
  std::vector<http::Request> asked;

  Task<Result<http::Response>> send(const http::Request& request) override {
    asked.push_back(request);
    Result<http::Response> answer = answers.front();
    if (answers.size() > 1) answers.pop_front();
    co_return answer;
  }
  Task<Result<http::StreamResponse>> open(const http::Request& request) override {
    auto answer = co_await send(request);
    if (!answer) co_return fail(answer.error());
    co_return http::StreamResponse{.status = answer->status,
                                   .headers = answer->headers,
                                   .body = std::make_unique<StringStream>(answer->body)};
  }
};

}  // namespace grapnel::kube
