#include "http/websocket.h"

#include <gmock/gmock.h>

#include "http/certificates.h"
#include "http/loopback_test.h"
#include "http/server.h"

namespace grapnel::http {
namespace {

using testing::HasSubstr;

Task<> echo(Exchange& x) {
  if (x.request().target == "/refuse") {
    (void)co_await x.respond(
        {.status = 403,
         .body = "not for " + std::string(x.request().headers.get("Authorization"))});
    co_return;
  }
  auto socket = co_await x.accept_websocket("v5.channel.k8s.io");
  if (!socket) co_return;
  while (true) {
    const auto message = co_await (*socket)->read();
    if (!message || message->closed) break;
    if (message->data == "close") break;
    if (message->data == "vanish") co_return;
    if (!co_await (*socket)->write(message->data, message->binary)) break;
  }
  co_await (*socket)->close();
}

struct WebSocketTest : LoopTest, testing::WithParamInterface<bool> {
  std::unique_ptr<Server> server;
  ClientOptions options;

  void SetUp() override {
    ServerOptions o;
    if (GetParam()) {
      const Time now = clock.now();
      const auto authority = make_authority(
          {.common_name = "test", .not_before = now - hours(1), .not_after = now + hours(1)});
      ASSERT_TRUE(authority);
      const auto own = make_certificate(*authority, {.common_name = "localhost",
                                                     .names = {"localhost", "127.0.0.1"},
                                                     .not_before = now - hours(1),
                                                     .not_after = now + hours(1)});
      ASSERT_TRUE(own);
      o.certificate_pem = own->certificate_pem;
      o.key_pem = own->key_pem;
      options.ca_pem = authority->certificate_pem;
    }
    auto started = start_server(executor, std::move(o), echo);
    ASSERT_TRUE(started);
    server = std::move(*started);
  }
  std::string url(std::string_view path = "/") const {
    return fmt::format("{}://127.0.0.1:{}{}", GetParam() ? "wss" : "ws", server->port(), path);
  }
  Task<Result<std::unique_ptr<WebSocket>>> connect(std::string path = "/") {
    return connect_websocket(executor, options,
                             {.target = url(path), .headers = {{"Authorization", "Bearer t"}}},
                             {"v5.channel.k8s.io", "v4.channel.k8s.io"});
  }
};

TEST_P(WebSocketTest, EchoesBothWays) {
  run([](WebSocketTest& t) -> Task<> {
    auto socket = co_await t.connect();
    EXPECT_TRUE(socket) << socket.error().message;
    if (!socket) co_return;
    EXPECT_EQ((*socket)->subprotocol(), "v5.channel.k8s.io");
    for (const size_t size : {0UL, 1UL, 125UL, 126UL, 65'535UL, 65'536UL, 3'000'000UL}) {
      const std::string sent(size, 'x');
      EXPECT_TRUE(co_await (*socket)->write(sent, size % 2 == 0));
      const auto got = co_await (*socket)->read();
      EXPECT_TRUE(got) << got.error().message;
      if (!got) co_return;
      EXPECT_EQ(got->data, sent);
      EXPECT_EQ(got->binary, size % 2 == 0);
    }
    co_await (*socket)->close();
  }(*this));
}

TEST_P(WebSocketTest, SeesTheOtherEndsGoodbye) {
  run([](WebSocketTest& t) -> Task<> {
    auto socket = co_await t.connect();
    EXPECT_TRUE(socket);
    if (!socket) co_return;
    EXPECT_TRUE(co_await (*socket)->write("close"));
    const auto end = co_await (*socket)->read();
    EXPECT_TRUE(end);
    if (end) EXPECT_TRUE(end->closed);
  }(*this));
}

TEST_P(WebSocketTest, AConnectionThatVanishesIsAnError) {
  run([](WebSocketTest& t) -> Task<> {
    auto socket = co_await t.connect();
    EXPECT_TRUE(socket);
    if (!socket) co_return;
    EXPECT_TRUE(co_await (*socket)->write("vanish"));
    const auto end = co_await (*socket)->read();
    EXPECT_FALSE(end);
    if (!end) EXPECT_EQ(end.error().reason, Reason::kTransport);
  }(*this));
}

TEST_P(WebSocketTest, ARefusalCarriesCodeAndBody) {
  run([](WebSocketTest& t) -> Task<> {
    const auto socket = co_await t.connect("/refuse");
    EXPECT_FALSE(socket);
    if (socket) co_return;
    EXPECT_EQ(socket.error().code, 403);
    EXPECT_EQ(socket.error().message, "not for Bearer t");
  }(*this));
}

TEST_P(WebSocketTest, ReadAndWriteRunTogetherAndManyMayWrite) {
  run([](WebSocketTest& t) -> Task<> {
    auto socket = co_await t.connect();
    EXPECT_TRUE(socket);
    if (!socket) co_return;
    int got = 0;
    auto reader = spawn(t.executor, [](WebSocket& s, int& count) -> Task<> {
      while (count < 60) {
        const auto message = co_await s.read();
        EXPECT_TRUE(message);
        if (!message) co_return;
        EXPECT_EQ(message->data.size(), 50'000U);
        ++count;
      }
    }(**socket, got));
    std::vector<Task<>> writers;
    for (int i = 0; i < 3; ++i) {
      writers.push_back([](WebSocket& s) -> Task<> {
        const std::string data(50'000, 'y');
        for (int n = 0; n < 20; ++n) EXPECT_TRUE(co_await s.write(data));
      }(**socket));
    }
    co_await all(std::move(writers));
    co_await reader.join();
    EXPECT_EQ(got, 60);
  }(*this));
}

TEST_P(WebSocketTest, CanBeCancelledOrDestroyedWhileReading) {
  const size_t before = open_descriptors();
  run([](WebSocketTest& t) -> Task<> {
    for (int i = 0; i < 6; ++i) {
      auto socket = co_await t.connect();
      EXPECT_TRUE(socket);
      if (!socket) co_return;
      auto reader = spawn(
          t.executor, [](WebSocket& s) -> Task<> { EXPECT_FALSE(co_await s.read()); }(**socket));
      if (i % 3 != 0) co_await t.clock.sleep(milliseconds(i));
      if (i % 2 == 0) reader.cancel();
      socket->reset();
      co_await reader.join();
    }
    co_await t.server->stop(seconds(2));
  }(*this));
  EXPECT_LE(open_descriptors(), before);
}

TEST_P(WebSocketTest, CannotConnectToNothing) {
  run([](WebSocketTest& t) -> Task<> {
    const auto nobody =
        co_await connect_websocket(t.executor, t.options, {.target = "wss://127.0.0.1:1/"}, {});
    EXPECT_FALSE(nobody);
    EXPECT_EQ(nobody.error().reason, Reason::kTransport);
    EXPECT_EQ(nobody.error().code, 0);
    const auto nonsense = co_await connect_websocket(t.executor, t.options, {.target = "x"}, {});
    EXPECT_FALSE(nonsense);
    EXPECT_EQ(nonsense.error().reason, Reason::kUsage);
  }(*this));
}

TEST_P(WebSocketTest, AServerThatSaysNothingEndsTheHandshake) {
  RawServer silent(executor, [](RawServer::Socket&) { return system_clock().sleep(hours(1)); });
  run([](WebSocketTest& t, std::string target) -> Task<> {
    const Instant begin = t.clock.instant();
    const auto socket = co_await connect_websocket(
        t.executor, t.options, {.target = target, .timeout = milliseconds(100)}, {});
    EXPECT_FALSE(socket);
    EXPECT_LT(t.clock.instant() - begin, seconds(10));
  }(*this, fmt::format("{}://127.0.0.1:{}/", GetParam() ? "wss" : "ws", silent.port())));
}

TEST_P(WebSocketTest, ARequestThatIsNoHandshakeIsRefused) {
  run([](WebSocketTest& t) -> Task<> {
    const auto transport = make_transport(t.executor, t.options);
    const auto answer = co_await transport->send(
        {.target =
             fmt::format("{}://127.0.0.1:{}/", GetParam() ? "https" : "http", t.server->port())});
    EXPECT_TRUE(answer) << answer.error().message;
    if (answer) EXPECT_EQ(answer->status, 400);
  }(*this));
}

INSTANTIATE_TEST_SUITE_P(Plain, WebSocketTest, testing::Values(false));
INSTANTIATE_TEST_SUITE_P(Tls, WebSocketTest, testing::Values(true));

}  // namespace
}  // namespace grapnel::http
