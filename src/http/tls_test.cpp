// Client and server over TLS: who trusts whom, and what a broken peer looks like.
#include <gmock/gmock.h>

#include "http/certificates.h"
#include "http/client.h"
#include "http/loopback_test.h"
#include "http/server.h"

namespace grapnel::http {
namespace {

using testing::HasSubstr;

Task<> echo(Exchange& x) {
  (void)co_await x.respond({.body = x.request().body});
}

struct TlsTest : LoopTest {
  CertificateAndKey authority = issue_authority();
  std::unique_ptr<Server> server;

  CertificateAndKey issue_authority() {
    const Time now = clock.now();
    return make_authority(
               {.common_name = "test", .not_before = now - hours(1), .not_after = now + hours(1)})
        .value();
  }
  CertificateAndKey issue(std::vector<std::string> names, bool for_client = false,
                          Duration life = hours(1)) {
    const Time now = clock.now();
    return make_certificate(authority, {.common_name = "someone",
                                        .names = std::move(names),
                                        .not_before = now - hours(2),
                                        .not_after = now + life,
                                        .for_client = for_client})
        .value();
  }
  void serve(const CertificateAndKey& own, Handler handler = echo, std::string client_ca = "") {
    auto started = start_server(executor,
                                {.certificate_pem = own.certificate_pem,
                                 .key_pem = own.key_pem,
                                 .client_ca_pem = std::move(client_ca)},
                                std::move(handler));
    ASSERT_TRUE(started) << started.error().message;
    server = std::move(*started);
  }
  std::string url(std::string_view host = "127.0.0.1") const {
    return fmt::format("https://{}:{}/", host, server->port());
  }
  Result<Response> send(ClientOptions options, Request request) {
    const auto transport = make_transport(executor, std::move(options));
    Result<Response> out = fail(Reason::kUnknown, "not run");
    run([](Transport& t, Request r, Result<Response>& o) -> Task<> { o = co_await t.send(r); }(
                                                             *transport, std::move(request), out));
    return out;
  }
};

TEST_F(TlsTest, CarriesBodiesBothWays) {
  serve(issue({"127.0.0.1", "localhost"}));
  const std::string body(3'000'000, 'x');
  const auto got = send({.ca_pem = authority.certificate_pem},
                        {.method = "POST", .target = url(), .body = body});
  ASSERT_TRUE(got) << got.error().message;
  EXPECT_EQ(got->body, body);
  EXPECT_TRUE(send({.ca_pem = authority.certificate_pem}, {.target = url("localhost")}));
}

TEST_F(TlsTest, TrustsOnlyItsAuthority) {
  serve(issue({"127.0.0.1"}));
  const auto other = issue_authority();
  for (const std::string& ca : {other.certificate_pem, std::string(), std::string("garbage")}) {
    const auto got = send({.ca_pem = ca}, {.method = "POST", .target = url(), .body = "x"});
    ASSERT_FALSE(got);
    EXPECT_EQ(got.error().reason, Reason::kTransport);
    EXPECT_FALSE(got.error().ambiguous) << "no request was sent";
  }
  EXPECT_TRUE(send({.insecure_skip_verify = true}, {.target = url()}));
}

TEST_F(TlsTest, ChecksTheServersName) {
  serve(issue({"api.example"}));
  const std::string ca = authority.certificate_pem;
  EXPECT_FALSE(send({.ca_pem = ca}, {.target = url()}));
  const auto named = send({.ca_pem = ca, .server_name = "api.example"}, {.target = url()});
  EXPECT_TRUE(named) << named.error().message;
  EXPECT_FALSE(send({.ca_pem = ca, .server_name = "other.example"}, {.target = url()}));
}

TEST_F(TlsTest, TheNameForVerificationIsNotTheHostHeader) {
  std::string host;
  serve(issue({"api.example"}), [&host](Exchange& x) -> Task<> {
    host = x.request().headers.get("Host");
    co_await echo(x);
  });
  EXPECT_TRUE(
      send({.ca_pem = authority.certificate_pem, .server_name = "api.example"}, {.target = url()}));
  EXPECT_EQ(host, fmt::format("127.0.0.1:{}", server->port()));
}

TEST_F(TlsTest, AnExpiredCertificateIsRefused) {
  serve(issue({"127.0.0.1"}, false, -hours(1)));
  const auto got = send({.ca_pem = authority.certificate_pem}, {.target = url()});
  ASSERT_FALSE(got);
  EXPECT_THAT(got.error().message, HasSubstr("expired"));
}

TEST_F(TlsTest, ClientCertificates) {
  serve(issue({"127.0.0.1"}), echo, authority.certificate_pem);
  const std::string ca = authority.certificate_pem;
  const auto own = issue({}, true);
  const auto shown = send(
      {.ca_pem = ca, .client_certificate_pem = own.certificate_pem, .client_key_pem = own.key_pem},
      {.target = url()});
  EXPECT_TRUE(shown) << shown.error().message;
  EXPECT_FALSE(send({.ca_pem = ca}, {.target = url()})) << "none shown";
  const auto stranger = issue_authority();
  EXPECT_FALSE(send({.ca_pem = ca,
                     .client_certificate_pem = stranger.certificate_pem,
                     .client_key_pem = stranger.key_pem},
                    {.target = url()}));
  EXPECT_FALSE(send({.ca_pem = ca,
                     .client_certificate_pem = own.certificate_pem,
                     .client_key_pem = stranger.key_pem},
                    {.target = url()}))
      << "another's key";
}

TEST_F(TlsTest, ACertificateCanBeSwapped) {
  serve(issue({"old.example"}));
  const ClientOptions fresh{.ca_pem = authority.certificate_pem, .server_name = "new.example"};
  EXPECT_FALSE(send(fresh, {.target = url()}));
  const auto next = issue({"new.example"});
  EXPECT_FALSE(server->set_certificate("garbage", next.key_pem));
  EXPECT_FALSE(server->set_certificate(next.certificate_pem, issue({}).key_pem));
  EXPECT_TRUE(server->set_certificate(next.certificate_pem, next.key_pem));
  EXPECT_TRUE(send(fresh, {.target = url()}));
}

TEST_F(TlsTest, AServerNeedsAValidCertificate) {
  const auto own = issue({"a"});
  EXPECT_FALSE(start_server(executor, {.certificate_pem = "x", .key_pem = own.key_pem}, echo));
  EXPECT_FALSE(
      start_server(executor, {.certificate_pem = own.certificate_pem, .key_pem = "x"}, echo));
}

TEST_F(TlsTest, WhoSpeaksPlainIsTurnedAway) {
  serve(issue({"127.0.0.1"}));
  const auto plain = send(
      {}, {.target = fmt::format("http://127.0.0.1:{}/", server->port()), .timeout = seconds(10)});
  EXPECT_FALSE(plain);
  RawServer answers_plainly(executor, RawServer::say("HTTP/1.1 200 OK\r\n\r\n"));
  const auto tls = send({.insecure_skip_verify = true},
                        {.method = "POST",
                         .target = fmt::format("https://127.0.0.1:{}/", answers_plainly.port()),
                         .timeout = seconds(2)});
  ASSERT_FALSE(tls);
  EXPECT_FALSE(tls.error().ambiguous);
}

// The server goes away while a long request is being written: no SIGPIPE, an ambiguous error.
TEST_F(TlsTest, AServerThatVanishesDuringAnUpload) {
  serve(issue({"127.0.0.1"}));
  run([](TlsTest& t) -> Task<> {
    const auto transport = make_transport(t.executor, {.ca_pem = t.authority.certificate_pem});
    EXPECT_TRUE(co_await transport->send({.target = t.url()}));
    Result<Response> got = fail(Reason::kUnknown, "");
    auto upload = spawn(t.executor, [](Transport& c, std::string u, Result<Response>& o) -> Task<> {
      o = co_await c.send({.method = "POST", .target = u, .body = std::string(7 << 20, 'x')});
    }(*transport, t.url(), got));
    co_await t.clock.sleep(milliseconds(2));
    t.server.reset();
    co_await upload.join();
    EXPECT_FALSE(got);
  }(*this));
}

TEST_F(TlsTest, StreamsAndSeesTheClientLeave) {
  bool left = false;
  serve(issue({"127.0.0.1"}), [&left](Exchange& x) -> Task<> {
    EXPECT_TRUE(co_await x.begin({}));
    EXPECT_TRUE(co_await x.write("one"));
    co_await x.closed();
    left = true;
  });
  run([](TlsTest& t, bool& gone) -> Task<> {
    const auto transport = make_transport(t.executor, {.ca_pem = t.authority.certificate_pem});
    {
      auto stream = co_await transport->open({.target = t.url(), .idle_timeout = seconds(30)});
      EXPECT_TRUE(stream);
      if (!stream) co_return;
      EXPECT_EQ(co_await stream->body->read(), "one");
      EXPECT_FALSE(gone);
    }
    for (int i = 0; i < 400 && !gone; ++i) co_await t.clock.sleep(milliseconds(5));
    EXPECT_TRUE(gone);
  }(*this, left));
}

TEST_F(TlsTest, ASlowReaderHoldsItsHandlerBack) {
  size_t written = 0;
  serve(issue({"127.0.0.1"}), [&written](Exchange& x) -> Task<> {
    (void)co_await x.begin({});
    const std::string piece(65'536, 'x');
    while (co_await x.write(piece)) written += piece.size();
  });
  run([](TlsTest& t, size_t& count) -> Task<> {
    const auto transport = make_transport(t.executor, {.ca_pem = t.authority.certificate_pem});
    auto stream = co_await transport->open({.target = t.url()});
    EXPECT_TRUE(stream);
    if (!stream) co_return;
    EXPECT_TRUE(co_await stands_still(count)) << "the kernel's buffers are full, ours too";
    const size_t first = count;
    size_t got = 0;
    while (got < first + (8UL << 20)) {
      const auto piece = co_await stream->body->read();
      EXPECT_TRUE(piece);
      if (!piece) co_return;
      got += piece->size();
    }
    stream->body.reset();
    co_await t.server->stop(seconds(2));
  }(*this, written));
}

// Small records, and then silence: what was read ahead must not wait for more to come.
Task<> say_much_and_stay(Exchange& x) {
  (void)co_await x.begin({});
  for (int i = 0; i < 4'000; ++i) (void)co_await x.write(std::string(200, 'x'));
  co_await x.closed();
}

TEST_F(TlsTest, WhatWasReadAheadIsTold) {
  serve(issue({"127.0.0.1"}), say_much_and_stay);
  const auto transport = make_transport(executor, {.ca_pem = authority.certificate_pem});
  for (const bool slow : {false, true}) {
    run([](Transport& t, std::string url, bool is_slow) -> Task<> {
      auto answer = co_await t.open({.target = url, .idle_timeout = seconds(10)});
      EXPECT_TRUE(answer);
      if (!answer) co_return;
      if (is_slow) co_await system_clock().sleep(seconds(1));
      size_t got = 0;
      while (got < 4'000 * 200) {
        const auto piece = co_await answer->body->read();
        EXPECT_TRUE(piece) << piece.error().message << " after " << got << " bytes";
        if (!piece) co_return;
        got += piece->size();
      }
    }(*transport, url(), slow));
  }
}

// Answers of several records on connections that are used again, some of them read by a timer.
TEST_F(TlsTest, ManyAnswersOnKeptConnections) {
  serve(issue({"127.0.0.1"}));
  const auto transport =
      make_transport(executor, {.ca_pem = authority.certificate_pem, .max_connections = 4});
  std::vector<Spawned> clients;
  size_t whole = 0;
  for (size_t client = 0; client < 8; ++client) {
    clients.push_back(
        spawn(executor, [](Transport& t, std::string url, size_t number, size_t& count) -> Task<> {
          for (size_t i = 0; i < 40; ++i) {
            const std::string body((i * 8 + number) * 211, 'x');
            const auto got = co_await t.send(
                {.method = "POST", .target = url, .body = body, .timeout = seconds(20)});
            EXPECT_TRUE(got) << got.error().message;
            if (!got) co_return;
            count += got->body == body ? 1 : 0;
          }
        }(*transport, url(), client, whole)));
  }
  run([](std::vector<Spawned>& all) -> Task<> {
    for (Spawned& one : all) co_await one.join();
  }(clients));
  EXPECT_EQ(whole, 320);
}

TEST_F(TlsTest, ManyWatchesAtOnce) {
  serve(issue({"127.0.0.1"}), [](Exchange& x) -> Task<> {
    EXPECT_TRUE(co_await x.begin({}));
    EXPECT_TRUE(co_await x.write("{}\n"));
    co_await x.closed();
  });
  run([](TlsTest& t) -> Task<> {
    const auto transport = make_transport(t.executor, {.ca_pem = t.authority.certificate_pem});
    std::vector<std::unique_ptr<BodyStream>> streams;
    for (int i = 0; i < 50; ++i) {
      auto stream = co_await transport->open({.target = t.url()});
      EXPECT_TRUE(stream);
      if (!stream) co_return;
      EXPECT_EQ(co_await stream->body->read(), "{}\n");
      streams.push_back(std::move(stream->body));
    }
    streams.clear();
    co_await t.server->stop(seconds(2));
  }(*this));
}

}  // namespace
}  // namespace grapnel::http
