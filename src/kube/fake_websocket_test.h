// For the tests of this folder: a WebSocket whose other end is the test.
#pragma once

#include <deque>
#include <string>
#include <vector>

#include "http/websocket.h"

namespace grapnel::kube {

class FakeWebSocket final : public http::WebSocket {
 public:
  explicit FakeWebSocket(Executor executor) : arrived_(std::move(executor)) {}

  // What the other end does.
  void send(std::string data) {
    coming_.push_back({.data = std::move(data)});
    arrived_.notify_all();
  }
  void say_goodbye() {
    coming_.push_back({.closed = true});
    arrived_.notify_all();
  }
  std::vector<std::string> received;

  Task<Result<Message>> read() override {
    while (coming_.empty()) co_await arrived_.wait();
    Message next = std::move(coming_.front());
    coming_.pop_front();
    co_return next;
  }
  Task<Result<>> write(std::string_view data, bool) override {
    received.emplace_back(data);
    co_return Result<>();
  }
  Task<> close() override { co_return; }
  std::string_view subprotocol() const override { return ""; }

 private:
  std::deque<Message> coming_;
  Signal arrived_;
};

}  // namespace grapnel::kube
