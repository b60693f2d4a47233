#include "http/server.h"

#include <gmock/gmock.h>

#include "http/client.h"
#include "http/loopback_test.h"

namespace grapnel::http {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

struct ServerTest : LoopTest {
  std::unique_ptr<Transport> transport = make_transport(executor, {});
  std::unique_ptr<Server> server;

  void serve(Handler handler, ServerOptions options = {}) {
    auto started = start_server(executor, std::move(options), std::move(handler));
    ASSERT_TRUE(started) << started.error().message;
    server = std::move(*started);
  }
  std::string url(std::string_view path = "/") const {
    return fmt::format("http://127.0.0.1:{}{}", server->port(), path);
  }
  Result<Response> send(Request request) {
    Result<Response> out = fail(Reason::kUnknown, "not run");
    run([](Transport& t, Request r, Result<Response>& o) -> Task<> { o = co_await t.send(r); }(
                                                             *transport, std::move(request), out));
    return out;
  }
  void stop(Duration grace = seconds(1)) {
    run([](Server& s, Duration g) -> Task<> { co_await s.stop(g); }(*server, grace));
  }
  // Says these bytes, and returns everything the server says until it closes.
  std::string talk(std::string bytes, bool half_close = false) {
    std::string out;
    run([](Executor e, uint16_t port, std::string say, bool half, std::string& got) -> Task<> {
      boost::asio::ip::tcp::socket socket(e);
      socket.connect({boost::asio::ip::make_address("127.0.0.1"), port});
      co_await RawServer::write(socket, say);
      if (half) socket.shutdown(boost::asio::ip::tcp::socket::shutdown_send);
      got = co_await read_all(socket);
    }(executor, server->port(), std::move(bytes), half_close, out));
    return out;
  }
  static Task<std::string> read_all(boost::asio::ip::tcp::socket& socket) {
    std::string out;
    char piece[4096];
    while (true) {
      const auto [error, count] = co_await socket.async_read_some(
          boost::asio::buffer(piece), boost::asio::as_tuple(boost::asio::use_awaitable));
      out.append(piece, count);
      if (error) co_return out;
    }
  }
};

Task<> echo(Exchange& x) {
  (void)co_await x.respond(
      {.headers = {{"X-Method", x.request().method}, {"X-Target", x.request().target}},
       .body = x.request().body});
}

TEST_F(ServerTest, AnswersWithWhatTheHandlerSays) {
  serve(echo);
  const auto got =
      send({.method = "PUT", .target = url("/a%20b?c=d"), .body = std::string(100'000, 'x')});
  ASSERT_TRUE(got) << got.error().message;
  EXPECT_EQ(got->status, 200);
  EXPECT_EQ(got->headers.get("X-Method"), "PUT");
  EXPECT_EQ(got->headers.get("X-Target"), "/a%20b?c=d");
  EXPECT_EQ(got->body, std::string(100'000, 'x'));
  EXPECT_TRUE(got->headers.has("Date"));
  stop();
}

TEST_F(ServerTest, HeadAndEmptyAnswersHaveNoBody) {
  serve([](Exchange& x) -> Task<> {
    const bool empty = x.request().target == "/204";
    (void)co_await x.respond({.status = empty ? 204 : 200, .body = empty ? "" : "12345"});
  });
  EXPECT_THAT(talk("HEAD / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"),
              testing::AllOf(HasSubstr("Content-Length: 5\r\n"), testing::EndsWith("\r\n\r\n")));
  const auto none = talk("GET /204 HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
  EXPECT_THAT(none, StartsWith("HTTP/1.1 204 No Content\r\n"));
  EXPECT_THAT(none, testing::Not(HasSubstr("Content-Length")));
}

TEST_F(ServerTest, AHandlerThatSaysNothingIsAnsweredFor) {
  serve([](Exchange&) -> Task<> { co_return; });
  EXPECT_EQ(send({.target = url()})->status, 500);
  serve([](Exchange&) -> Task<> {
    throw std::runtime_error("a defect");
    co_return;
  });
  EXPECT_EQ(send({.target = url()})->status, 500);
}

TEST_F(ServerTest, ASecondAnswerIsRefused) {
  serve([](Exchange& x) -> Task<> {
    EXPECT_FALSE(co_await x.write("too early"));
    EXPECT_TRUE(co_await x.respond({.body = "one"}));
    EXPECT_FALSE(co_await x.respond({.body = "two"}));
    EXPECT_FALSE(co_await x.begin({}));
    EXPECT_FALSE(co_await x.finish());
  });
  EXPECT_EQ(send({.target = url()})->body, "one");
  EXPECT_EQ(send({.target = url()})->body, "one");
}

TEST_F(ServerTest, StreamsInChunks) {
  serve([](Exchange& x) -> Task<> {
    EXPECT_TRUE(co_await x.begin({.headers = {{"Content-Type", "application/json"}}}));
    for (int i = 0; i < 5; ++i) EXPECT_TRUE(co_await x.write(fmt::format("{}\n", i)));
    EXPECT_TRUE(co_await x.write(""));
    EXPECT_TRUE(co_await x.finish());
  });
  for (int i = 0; i < 2; ++i) {
    const auto got = send({.target = url()});
    ASSERT_TRUE(got) << got.error().message;
    EXPECT_EQ(got->body, "0\n1\n2\n3\n4\n");
    EXPECT_EQ(got->headers.get("Transfer-Encoding"), "chunked");
  }
  EXPECT_THAT(talk("GET / HTTP/1.0\r\n\r\n"), testing::EndsWith("\r\n\r\n0\n1\n2\n3\n4\n"));
}

TEST_F(ServerTest, AStreamWhereNoBodyMayBeIsTheHeadOnly) {
  serve([](Exchange& x) -> Task<> {
    EXPECT_TRUE(co_await x.begin({.status = x.request().method == "HEAD" ? 200 : 304}));
    EXPECT_TRUE(co_await x.write("nobody sees this"));
    EXPECT_TRUE(co_await x.finish());
  });
  for (const char* method : {"HEAD", "GET"}) {
    const auto got =
        talk(fmt::format("{} / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n", method));
    EXPECT_THAT(got, testing::EndsWith("\r\n\r\n"));
    EXPECT_THAT(got, testing::Not(HasSubstr("chunked")));
  }
}

TEST_F(ServerTest, AStreamThatIsNotFinishedIsCut) {
  serve([](Exchange& x) -> Task<> {
    (void)co_await x.begin({});
    (void)co_await x.write("half");
  });
  const auto got = send({.target = url()});
  ASSERT_FALSE(got);
  EXPECT_EQ(got.error().reason, Reason::kTransport);
}

TEST_F(ServerTest, ALineBreakInAHeaderStaysInIt) {
  serve([](Exchange& x) -> Task<> {
    (void)co_await x.respond({.headers = {{"X", "a\r\nEvil: b"}}});
  });
  const auto got = send({.target = url()});
  ASSERT_TRUE(got);
  EXPECT_FALSE(got->headers.has("Evil"));
}

TEST_F(ServerTest, KnowsWhenTheClientHasGone) {
  bool gone = false;
  serve([&gone](Exchange& x) -> Task<> {
    co_await x.closed();
    gone = true;
  });
  run([](ServerTest& t, bool& g) -> Task<> {
    {
      auto request = spawn(t.executor, [](Transport& c, std::string u) -> Task<> {
        (void)co_await c.send({.target = u});
      }(*t.transport, t.url()));
      co_await t.clock.sleep(milliseconds(50));
      EXPECT_FALSE(g);
    }
    for (int i = 0; i < 400 && !g; ++i) co_await t.clock.sleep(milliseconds(5));
    EXPECT_TRUE(g);
  }(*this, gone));
}

TEST_F(ServerTest, PipelinedRequestsSurviveTheWatchForAClose) {
  serve([](Exchange& x) -> Task<> {
    const Instant deadline = system_clock().instant() + milliseconds(20);
    EXPECT_FALSE(co_await with_deadline(system_clock(), deadline, x.closed()));
    (void)co_await x.respond({.body = x.request().target});
  });
  const auto got = talk(
      "GET /1 HTTP/1.1\r\nHost: a\r\n\r\nGET /2 HTTP/1.1\r\nHost: a\r\n\r\n"
      "GET /3 HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
  EXPECT_THAT(got, testing::ContainsRegex("/1HTTP(.|\n)*/2HTTP(.|\n)*/3$"));
}

struct RawCase {
  const char* name;
  std::string bytes;
  std::string answer;  // what it starts with; "" when the server just closes
};

class RawTest : public ServerTest, public testing::WithParamInterface<RawCase> {};

TEST_P(RawTest, MalformedRequestsGetAStatusOrAClose) {
  serve(echo, {.max_body = 1000, .header_timeout = milliseconds(300)});
  const std::string got = talk(GetParam().bytes, true);
  if (GetParam().answer.empty()) {
    EXPECT_EQ(got, "");
  } else {
    EXPECT_THAT(got, StartsWith(GetParam().answer));
  }
  EXPECT_TRUE(send({.target = url()})) << "and the server goes on";
}

INSTANTIATE_TEST_SUITE_P(
    Table, RawTest,
    testing::Values(
        RawCase{"nothing", "", ""}, RawCase{"half_a_line", "GET /", ""},
        RawCase{"garbage", "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", "HTTP/1.1 400"},
        RawCase{"zeroes", std::string(100, '\0'), "HTTP/1.1 400"},
        RawCase{"no_host", "GET / HTTP/1.1\r\n\r\n", "HTTP/1.1 400"},
        RawCase{"two_hosts", "GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", "HTTP/1.1 400"},
        RawCase{"old_version", "GET / HTTP/1.0\r\n\r\n", "HTTP/1.1 200"},
        RawCase{"new_version", "GET / HTTP/2.0\r\nHost: a\r\n\r\n", "HTTP/1.1 505"},
        RawCase{"bad_version", "GET / HTPP/1.1\r\nHost: a\r\n\r\n", "HTTP/1.1 505"},
        RawCase{"no_target", "GET HTTP/1.1\r\nHost: a\r\n\r\n", "HTTP/1.1 400"},
        RawCase{"control_in_target", "GET /\x01 HTTP/1.1\r\nHost: a\r\n\r\n", "HTTP/1.1 400"},
        RawCase{"space_before_colon", "GET / HTTP/1.1\r\nHost : a\r\n\r\n", "HTTP/1.1 400"},
        RawCase{"no_colon", "GET / HTTP/1.1\r\nHost: a\r\nnonsense\r\n\r\n", "HTTP/1.1 400"},
        RawCase{"negative_length", "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: -1\r\n\r\n",
                "HTTP/1.1 400"},
        RawCase{"huge_length",
                "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 99999999999999999999\r\n\r\n",
                "HTTP/1.1 400"},
        RawCase{"two_lengths",
                "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab",
                "HTTP/1.1 400"},
        RawCase{"length_and_chunked",
                "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nTransfer-Encoding: chunked"
                "\r\n\r\n0\r\n\r\n",
                "HTTP/1.1 400"},
        RawCase{"bad_chunk",
                "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
                "HTTP/1.1 400"},
        RawCase{"huge_chunk",
                "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"
                "ffffffffffffffff\r\n",
                "HTTP/1.1 413"},
        RawCase{"chunks",
                "POST / HTTP/1.1\r\nHost: a\r\nConnection: close\r\nTransfer-Encoding: chunked"
                "\r\n\r\n3;x=y\r\nabc\r\n0\r\nT: v\r\n\r\n",
                "HTTP/1.1 200"},
        RawCase{"cut_body", "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nab", ""},
        RawCase{"body_too_long", "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1001\r\n\r\n",
                "HTTP/1.1 413"},
        RawCase{"chunked_too_long",
                "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3e9\r\n" +
                    std::string(1001, 'x'),
                "HTTP/1.1 413"},
        RawCase{"header_too_long",
                "GET / HTTP/1.1\r\nHost: a\r\nX: " + std::string(70'000, 'x') + "\r\n\r\n",
                "HTTP/1.1 431"},
        RawCase{"target_too_long", "GET /" + std::string(70'000, 'x') + " HTTP/1.1\r\n",
                "HTTP/1.1 431"},
        RawCase{"many_headers",
                [] {
                  std::string out = "GET / HTTP/1.1\r\nHost: a\r\n";
                  for (int i = 0; i < 10'000; ++i) out += "A: bcdef\r\n";
                  return out + "\r\n";
                }(),
                "HTTP/1.1 431"},
        RawCase{"expects",
                "PUT / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\n"
                "Content-Length: 2\r\n\r\n",
                "HTTP/1.1 100 Continue\r\n\r\n"},
        RawCase{"expects_else", "GET / HTTP/1.1\r\nHost: a\r\nExpect: miracles\r\n\r\n",
                "HTTP/1.1 417"},
        RawCase{"expects_too_much",
                "PUT / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\n"
                "Content-Length: 2000\r\n\r\n",
                "HTTP/1.1 413"},
        RawCase{"absolute_target",
                "GET http://a/b HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n", "HTTP/1.1 200"},
        RawCase{"empty_lines_first", "\r\nGET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n",
                "HTTP/1.1 "}),
    [](const auto& info) { return info.param.name; });

TEST_F(ServerTest, ASlowHeaderTimesOut) {
  serve(echo, {.header_timeout = milliseconds(50)});
  EXPECT_THAT(talk("GET / HT"), StartsWith("HTTP/1.1 408"));
  EXPECT_THAT(talk("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nab"),
              StartsWith("HTTP/1.1 408"));
}

TEST_F(ServerTest, AnIdleConnectionIsClosed) {
  serve(echo, {.idle_timeout = milliseconds(50)});
  EXPECT_EQ(talk(""), "");
  EXPECT_THAT(talk("GET / HTTP/1.1\r\nHost: a\r\n\r\n"), StartsWith("HTTP/1.1 200"));
}

TEST_F(ServerTest, AnAddressInUseIsAnError) {
  serve(echo);
  const auto second = start_server(executor, {.port = server->port()}, echo);
  ASSERT_FALSE(second);
  EXPECT_THAT(second.error().message,
              HasSubstr(fmt::format("cannot listen on 127.0.0.1:{}: Address already in use",
                                    server->port())));
  EXPECT_FALSE(start_server(executor, {.address = "not-an-address"}, echo));
}

TEST_F(ServerTest, UpgradesToBytes) {
  serve([](Exchange& x) -> Task<> {
    auto stream = co_await x.upgrade({{"Upgrade", "tcp"}, {"Connection", "Upgrade"}});
    EXPECT_TRUE(stream);
    while (true) {
      const auto piece = co_await (*stream)->read();
      if (!piece || piece->empty()) break;
      EXPECT_TRUE(co_await (*stream)->write("<" + *piece + ">"));
    }
    co_await (*stream)->close();
  });
  const auto got =
      talk("GET / HTTP/1.1\r\nHost: a\r\nUpgrade: tcp\r\nConnection: Upgrade\r\n\r\nearly", true);
  EXPECT_THAT(got, StartsWith("HTTP/1.1 101 Switching Protocols\r\n"));
  EXPECT_THAT(got, HasSubstr("Connection: Upgrade\r\n"));
  EXPECT_THAT(got, testing::EndsWith("\r\n\r\n<early>"));
}

TEST_F(ServerTest, TooManyConnectionsAreTurnedAway) {
  serve(echo, {.max_connections = 0});
  EXPECT_THAT(talk(""), StartsWith("HTTP/1.1 503"));
}

TEST_F(ServerTest, StopWaitsForHandlersAndClosesTheIdle) {
  serve([](Exchange& x) -> Task<> {
    co_await system_clock().sleep(milliseconds(100));
    (void)co_await x.respond({.body = "late"});
  });
  run([](ServerTest& t) -> Task<> {
    boost::asio::ip::tcp::socket idle(t.executor);
    idle.connect({boost::asio::ip::make_address("127.0.0.1"), t.server->port()});
    Result<Response> got = fail(Reason::kUnknown, "");
    auto request =
        spawn(t.executor, [](Transport& c, std::string u, Result<Response>& o) -> Task<> {
          o = co_await c.send({.target = u});
        }(*t.transport, t.url(), got));
    co_await t.clock.sleep(milliseconds(30));
    const Instant begin = t.clock.instant();
    co_await t.server->stop(seconds(10));
    EXPECT_LT(t.clock.instant() - begin, seconds(5));
    co_await request.join();
    EXPECT_TRUE(got);
    if (got) EXPECT_EQ(got->body, "late");
    if (got) EXPECT_EQ(got->headers.get("Connection"), "close");
    EXPECT_EQ(co_await read_all(idle), "");
    EXPECT_FALSE(co_await t.transport->send({.target = t.url()}));
  }(*this));
}

TEST_F(ServerTest, StopEndsHandlersThatDoNotEnd) {
  bool unwound = false;
  serve([&unwound](Exchange& x) -> Task<> {
    struct Guard {
      bool& flag;
      ~Guard() { flag = true; }
    } guard{unwound};
    (void)co_await x.begin({});
    const std::string piece(1 << 20, 'x');
    while (co_await x.write(piece)) {
    }
  });
  run([](ServerTest& t, bool& ended) -> Task<> {
    auto stream = co_await t.transport->open({.target = t.url()});
    EXPECT_TRUE(stream);
    co_await t.clock.sleep(milliseconds(50));
    EXPECT_FALSE(ended) << "it waits in a write";
    co_await t.server->stop(milliseconds(50));
    EXPECT_TRUE(ended);
  }(*this, unwound));
}

TEST_F(ServerTest, DestroyingTheServerClosesEverything) {
  serve([](Exchange& x) -> Task<> { co_await x.closed(); });
  run([](ServerTest& t) -> Task<> {
    auto request = spawn(t.executor, [](Transport& c, std::string u) -> Task<> {
      EXPECT_FALSE(co_await c.send({.target = u}));
    }(*t.transport, t.url()));
    co_await t.clock.sleep(milliseconds(20));
    t.server.reset();
    co_await request.join();
  }(*this));
}

TEST_F(ServerTest, AThousandRequestsAtOnce) {
  serve([](Exchange& x) -> Task<> {
    co_await system_clock().sleep(milliseconds(5));
    co_await echo(x);
  });
  run([](ServerTest& t) -> Task<> {
    int answered = 0;
    std::vector<Task<>> tasks;
    for (int i = 0; i < 1000; ++i) {
      tasks.push_back([](ServerTest& test, int n, int& count) -> Task<> {
        const auto got = co_await test.transport->send(
            {.method = "POST", .target = test.url(fmt::format("/{}", n)), .body = "x"});
        EXPECT_TRUE(got) << got.error().message;
        if (got) EXPECT_EQ(got->headers.get("X-Target"), fmt::format("/{}", n));
        ++count;
      }(t, i, answered));
    }
    co_await all(std::move(tasks));
    EXPECT_EQ(answered, 1000);
  }(*this));
}

TEST_F(ServerTest, NoDescriptorIsLeftBehind) {
  transport.reset();
  loop.run_for(milliseconds(1));
  const size_t before = open_descriptors();
  {
    transport = make_transport(executor, {});
    serve(echo);
    for (int i = 0; i < 20; ++i) EXPECT_TRUE(send({.target = url()}));
    transport.reset();
    stop();
    server.reset();
    loop.run_for(milliseconds(20));
  }
  EXPECT_EQ(open_descriptors(), before);
}

}  // namespace
}  // namespace grapnel::http
