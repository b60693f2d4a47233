// What the tests of this folder share: a loop that must end, and a peer that says exact bytes.
#pragma once

#include <gtest/gtest.h>

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/buffer.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/read_until.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>
#include <filesystem>
#include <functional>
#include <list>
#include <string>

#include "base/async.h"
#include "http/message.h"

namespace grapnel::http {

inline size_t open_descriptors() {
  size_t count = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    ++count;
  }
  return count;
}

// Until a counter stands still for a while: the pipes behind it are full.
inline Task<bool> stands_still(size_t& counter) {
  for (int i = 0; i < 100; ++i) {
    const size_t before = counter;
    co_await system_clock().sleep(milliseconds(300));
    if (counter == before && counter != 0) co_return true;
  }
  co_return false;
}

struct LoopTest : testing::Test {
  boost::asio::io_context loop;
  Executor executor = loop.get_executor();
  Clock& clock = system_clock();

  void run(Task<> task, Duration limit = seconds(60)) {
    auto main = spawn(executor, std::move(task));
    loop.restart();
    const Instant deadline = clock.instant() + limit;
    while (!main.done() && clock.instant() < deadline) loop.run_for(milliseconds(5));
    ASSERT_TRUE(main.done()) << "still waiting";
  }
};

// Accepts connections on loopback and hands each to a script.
class RawServer {
 public:
  using Socket = boost::asio::ip::tcp::socket;
  using Acceptor = boost::asio::ip::tcp::acceptor;
  using Endpoint = boost::asio::ip::tcp::endpoint;
  using Script = std::function<Task<>(Socket&)>;

  RawServer(const Executor& executor, Script script)
      : acceptor_(std::make_shared<Acceptor>(
            executor, Endpoint(boost::asio::ip::make_address("127.0.0.1"), 0))),
        script_(std::make_shared<Script>(std::move(script))),
        accepting_(spawn(executor, accept(executor, acceptor_, script_, sessions_, accepted_))) {}
  ~RawServer() { sessions_->clear(); }

  std::string url(std::string_view path = "/") const {
    return fmt::format("http://127.0.0.1:{}{}", port(), path);
  }
  uint16_t port() const { return acceptor_->local_endpoint().port(); }
  int accepted() const { return *accepted_; }

  // Reads one request's head and says `answer`.
  static Script say(std::string answer) {
    return [text = std::make_shared<std::string>(std::move(answer))](Socket& socket) {
      return say_once(socket, text);
    };
  }
  static Task<std::string> read_head(Socket& socket) {
    std::string head;
    co_await boost::asio::async_read_until(socket, boost::asio::dynamic_buffer(head), "\r\n\r\n",
                                           boost::asio::as_tuple(boost::asio::use_awaitable));
    co_return head;
  }
  static Task<bool> write(Socket& socket, std::string text) {
    const auto [error, count] = co_await boost::asio::async_write(
        socket, boost::asio::buffer(text), boost::asio::as_tuple(boost::asio::use_awaitable));
    co_return !error;
  }

 private:
  static Task<> say_once(Socket& socket, std::shared_ptr<std::string> text) {
    co_await read_head(socket);
    co_await write(socket, *text);
  }
  static Task<> serve(Socket socket, std::shared_ptr<Script> script) { co_await (*script)(socket); }
  static Task<> accept(Executor executor, std::shared_ptr<Acceptor> acceptor,
                       std::shared_ptr<Script> script, std::shared_ptr<std::list<Spawned>> sessions,
                       std::shared_ptr<int> accepted) {
    while (true) {
      auto [error, socket] =
          co_await acceptor->async_accept(boost::asio::as_tuple(boost::asio::use_awaitable));
      if (error) co_return;
      ++*accepted;
      sessions->push_back(spawn(executor, serve(std::move(socket), script)));
    }
  }

  std::shared_ptr<Acceptor> acceptor_;
  std::shared_ptr<Script> script_;
  std::shared_ptr<std::list<Spawned>> sessions_ = std::make_shared<std::list<Spawned>>();
  std::shared_ptr<int> accepted_ = std::make_shared<int>(0);
  Spawned accepting_;
};

}  // namespace grapnel::http
