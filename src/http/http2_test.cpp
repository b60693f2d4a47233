// Requests over HTTP/2, against a server of nghttp2's that does what the path says.
#include "http/http2.h"

#include <gmock/gmock.h>
#include <nghttp2/nghttp2.h>

#include <boost/asio/ip/tcp.hpp>
#include <map>

#include "http/certificates.h"
#include "http/loopback_test.h"
#include "http/server.h"
#include "http/tls.h"

namespace grapnel::http {
namespace {

namespace asio = boost::asio;
using testing::HasSubstr;

constexpr size_t kLong = 3'000'000;

// What the server's connections have seen together.
struct Seen {
  size_t connections = 0;
  size_t ended = 0;
  size_t under_way = 0;
  size_t most_at_once = 0;
  size_t given_up = 0;
  std::map<std::string, std::string> fields;  // of the last request
};

// The server's end of a connection. Paths: /echo answers with the body, /long with a long one, and
// the others misbehave as they are called.
class Peer {
 public:
  Peer(std::shared_ptr<Channel> channel, Seen& seen) : channel_(std::move(channel)), seen_(seen) {
    nghttp2_session_callbacks* callbacks = nullptr;
    nghttp2_session_callbacks_new(&callbacks);
    nghttp2_session_callbacks_set_on_header_callback(
        callbacks,
        [](nghttp2_session*, const nghttp2_frame* frame, const uint8_t* name, size_t name_size,
           const uint8_t* value, size_t value_size, uint8_t, void* self) {
          static_cast<Peer*>(self)->streams_[frame->hd.stream_id].fields.emplace(
              std::string(name, name + name_size), std::string(value, value + value_size));
          return 0;
        });
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(
        callbacks,
        [](nghttp2_session*, uint8_t, int32_t id, const uint8_t* data, size_t size, void* self) {
          static_cast<Peer*>(self)->streams_[id].body.append(data, data + size);
          return 0;
        });
    nghttp2_session_callbacks_set_on_frame_recv_callback(
        callbacks, [](nghttp2_session*, const nghttp2_frame* frame, void* self) {
          static_cast<Peer*>(self)->on_frame(*frame);
          return 0;
        });
    nghttp2_session_callbacks_set_on_stream_close_callback(
        callbacks, [](nghttp2_session*, int32_t, uint32_t code, void* self) {
          auto& seen_by_all = static_cast<Peer*>(self)->seen_;
          --seen_by_all.under_way;
          if (code == NGHTTP2_CANCEL) ++seen_by_all.given_up;
          return 0;
        });
    nghttp2_session_server_new(&session_, callbacks, this);
    nghttp2_session_callbacks_del(callbacks);
    const nghttp2_settings_entry limit{NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, 100};
    nghttp2_submit_settings(session_, NGHTTP2_FLAG_NONE, &limit, 1);
  }
  Peer(const Peer&) = delete;
  Peer& operator=(const Peer&) = delete;
  ~Peer() {
    seen_.under_way = 0;
    nghttp2_session_del(session_);
  }

  Task<> run() {
    if (co_await channel_->handshake()) co_return;
    ++seen_.connections;
    std::string in;
    do {
      const uint8_t* data = nullptr;
      ssize_t size = 0;
      while ((size = nghttp2_session_mem_send(session_, &data)) > 0) {
        if (co_await channel_->write(
                {reinterpret_cast<const char*>(data), static_cast<size_t>(size)})) {
          co_return;
        }
      }
      if (hangs_up_) break;
      in.clear();
      const auto read = co_await channel_->append_to(in, 65536);
      if (read.error || read.count == 0) break;
    } while (nghttp2_session_mem_recv(session_, reinterpret_cast<const uint8_t*>(in.data()),
                                      in.size()) >= 0);
    channel_->close();
    ++seen_.ended;
  }

 private:
  struct Stream {
    std::map<std::string, std::string> fields;
    std::string body;
    size_t sent = 0;
  };

  void on_frame(const nghttp2_frame& frame) {
    const bool is_request = frame.hd.type == NGHTTP2_HEADERS || frame.hd.type == NGHTTP2_DATA;
    if (frame.hd.type == NGHTTP2_HEADERS) {
      seen_.most_at_once = std::max(seen_.most_at_once, ++seen_.under_way);
    }
    if (!is_request || (frame.hd.flags & NGHTTP2_FLAG_END_STREAM) == 0) return;
    const int32_t id = frame.hd.stream_id;
    Stream& stream = streams_[id];
    seen_.fields = stream.fields;
    const std::string path = stream.fields[":path"];
    if (path == "/never") return;
    if (path == "/reset") return reset(id, NGHTTP2_INTERNAL_ERROR);
    if (path == "/refuse") return reset(id, NGHTTP2_REFUSED_STREAM);
    if (path == "/hang-up") {
      hangs_up_ = true;
      return;
    }
    if (path == "/goodbye") {
      nghttp2_submit_goaway(session_, NGHTTP2_FLAG_NONE, id - 2, NGHTTP2_NO_ERROR, nullptr, 0);
      return;
    }
    if (path == "/long") stream.body = std::string(kLong, 'x');
    answer(id, path == "/short" ? "10" : "");
  }

  void reset(int32_t id, uint32_t code) {
    nghttp2_submit_rst_stream(session_, NGHTTP2_FLAG_NONE, id, code);
  }

  void answer(int32_t id, std::string length) {
    std::vector<std::pair<std::string, std::string>> fields{{":status", "201"}, {"x-one", "a"}};
    if (!length.empty()) fields.emplace_back("content-length", length);
    std::vector<nghttp2_nv> view;
    for (auto& [name, value] : fields) {
      view.push_back({reinterpret_cast<uint8_t*>(name.data()),
                      reinterpret_cast<uint8_t*>(value.data()), name.size(), value.size(),
                      NGHTTP2_NV_FLAG_NONE});
    }
    nghttp2_data_provider body{};
    body.read_callback = [](nghttp2_session*, int32_t of, uint8_t* out, size_t size,
                            uint32_t* flags, nghttp2_data_source*, void* self) -> ssize_t {
      Stream& from = static_cast<Peer*>(self)->streams_[of];
      const size_t count = from.body.copy(reinterpret_cast<char*>(out), size, from.sent);
      from.sent += count;
      if (from.sent == from.body.size()) *flags |= NGHTTP2_DATA_FLAG_EOF;
      return static_cast<ssize_t>(count);
    };
    nghttp2_submit_response(session_, id, view.data(), view.size(), &body);
  }

  std::shared_ptr<Channel> channel_;
  Seen& seen_;
  nghttp2_session* session_ = nullptr;
  std::map<int32_t, Stream> streams_;
  bool hangs_up_ = false;
};

struct Http2Test : LoopTest {
  using Acceptor = asio::ip::tcp::acceptor;

  Seen seen;
  CertificateAndKey authority = issue();
  TlsContext context = make_context();
  Acceptor acceptor{executor, {asio::ip::make_address("127.0.0.1"), 0}};
  std::list<Spawned> sessions;
  Spawned accepting = spawn(executor, accept(*this));
  std::shared_ptr<Http2Pool> pool = make_pool({.ca_pem = authority.certificate_pem});

  CertificateAndKey issue() {
    const Time now = clock.now();
    return make_authority(
               {.common_name = "test", .not_before = now - hours(1), .not_after = now + hours(1)})
        .value();
  }
  CertificateAndKey issue_own() {
    const Time now = clock.now();
    return make_certificate(authority, {.common_name = "server",
                                        .names = {"127.0.0.1"},
                                        .not_before = now - hours(1),
                                        .not_after = now + hours(1)})
        .value();
  }
  TlsContext make_context() {
    const auto own = issue_own();
    auto made = make_server_context(
        {.certificate_pem = own.certificate_pem, .key_pem = own.key_pem, .client_ca_pem = ""});
    const auto choose = +[](SSL*, const unsigned char** out, unsigned char* size,
                            const unsigned char* in, unsigned in_size, void*) {
      unsigned char* chosen = nullptr;
      static constexpr unsigned char kHttp2[] = "\x02h2";
      if (SSL_select_next_proto(&chosen, size, kHttp2, 3, in, in_size) != OPENSSL_NPN_NEGOTIATED) {
        return SSL_TLSEXT_ERR_ALERT_FATAL;
      }
      *out = chosen;
      return SSL_TLSEXT_ERR_OK;
    };
    SSL_CTX_set_alpn_select_cb(made->get(), choose, nullptr);
    return *made;
  }
  std::shared_ptr<Http2Pool> make_pool(ClientOptions options, Duration idle = seconds(30)) {
    return std::make_shared<Http2Pool>(
        executor, std::make_shared<const ClientOptions>(std::move(options)), idle);
  }
  std::string url(std::string_view path) const {
    return fmt::format("https://127.0.0.1:{}{}", acceptor.local_endpoint().port(), path);
  }

  static Task<> accept(Http2Test& self) {
    while (true) {
      auto [error, socket] =
          co_await self.acceptor.async_accept(asio::as_tuple(asio::use_awaitable));
      if (error) co_return;
      socket.non_blocking(true);
      auto channel = make_tls_channel(self.executor, socket.release(), self.context);
      self.sessions.push_back(spawn(self.executor, serve(std::move(channel), self.seen)));
    }
  }
  static Task<> serve(std::shared_ptr<Channel> channel, Seen& seen) {
    Peer peer(std::move(channel), seen);
    co_await peer.run();
  }

  using Answer = std::optional<Result<Response>>;
  static Task<> keep(Http2Pool& pool, Request request, Answer& out) {
    out = co_await pool.send(request);
  }
  Answer send(Request request) {
    Answer out;
    run(keep(*pool, std::move(request), out));
    return out;
  }
};

TEST_F(Http2Test, CarriesARequestAndItsAnswer) {
  const auto got = send({.method = "POST",
                         .target = url("/echo?x=%20"),
                         .headers = {{"X-Two", "b"}, {"Connection", "close"}, {"X-Empty", ""}},
                         .body = "hello"});
  ASSERT_TRUE(got);
  ASSERT_TRUE(*got) << got->error().message;
  EXPECT_EQ((*got)->status, 201);
  EXPECT_EQ((*got)->body, "hello");
  EXPECT_EQ((*got)->headers.get("X-One"), "a");
  EXPECT_EQ(seen.fields[":method"], "POST");
  EXPECT_EQ(seen.fields[":path"], "/echo?x=%20");
  EXPECT_EQ(seen.fields["content-length"], "5");
  EXPECT_EQ(seen.fields["x-two"], "b");
  EXPECT_FALSE(seen.fields.contains("connection"));
  EXPECT_EQ("https://" + seen.fields[":authority"] + "/", url("/"));
}

TEST_F(Http2Test, ManyShareFewConnections) {
  std::vector<Answer> answers(200);
  std::vector<Task<>> tasks;
  for (size_t i = 0; i < answers.size(); ++i) {
    tasks.push_back(keep(
        *pool, {.method = "POST", .target = url("/echo"), .body = std::to_string(i)}, answers[i]));
  }
  run(all(std::move(tasks)));
  for (size_t i = 0; i < answers.size(); ++i) {
    ASSERT_TRUE(answers[i]);
    ASSERT_TRUE(*answers[i]) << answers[i]->error().message;
    EXPECT_EQ((*answers[i])->body, std::to_string(i));
  }
  EXPECT_GT(seen.most_at_once, 50U);
  EXPECT_EQ(seen.connections, 9U);
}

TEST_F(Http2Test, LongBodiesGoBothWays) {
  const std::string body(kLong, 'y');
  const auto up = send({.method = "PUT", .target = url("/echo"), .body = body});
  ASSERT_TRUE(up && *up);
  EXPECT_EQ((*up)->body, body);
  const auto down = send({.target = url("/long")});
  ASSERT_TRUE(down && *down);
  EXPECT_EQ((*down)->body.size(), kLong);
}

TEST_F(Http2Test, WhatTheServerHasNotBegunGoesAnotherWay) {
  EXPECT_FALSE(send({.method = "POST", .target = url("/refuse"), .body = "x"}));
  EXPECT_FALSE(send({.method = "POST", .target = url("/goodbye"), .body = "x"}));
  const auto next = send({.target = url("/echo")});
  EXPECT_TRUE(next && *next) << "a new connection";
  EXPECT_EQ(seen.connections, 2U);
}

TEST_F(Http2Test, WhatItMayHaveBegunIsAmbiguous) {
  for (const char* path : {"/reset", "/hang-up", "/short"}) {
    const auto write = send({.method = "POST", .target = url(path), .body = "x"});
    ASSERT_TRUE(write && !*write) << path;
    EXPECT_EQ(write->error().reason, Reason::kTransport);
    EXPECT_TRUE(write->error().ambiguous) << path;
    EXPECT_THAT(write->error().message, HasSubstr(path));
    const auto read = send({.target = url(path)});
    ASSERT_TRUE(read && !*read) << path;
    EXPECT_FALSE(read->error().ambiguous) << path;
  }
}

TEST_F(Http2Test, AfterSilenceTheConnectionGetsNoMore) {
  const auto late = send({.method = "POST", .target = url("/never"), .timeout = milliseconds(50)});
  ASSERT_TRUE(late && !*late);
  EXPECT_THAT(late->error().message, HasSubstr("no answer within 0.05 s"));
  EXPECT_TRUE(late->error().ambiguous);
  const auto next = send({.target = url("/echo")});
  EXPECT_TRUE(next && *next);
  EXPECT_EQ(seen.connections, 2U);
}

TEST_F(Http2Test, WhatNobodyUsesIsClosed) {
  pool = make_pool({.ca_pem = authority.certificate_pem}, milliseconds(50));
  ASSERT_TRUE(send({.target = url("/echo")}));
  run([](Http2Test& self) -> Task<> {
    while (self.seen.ended == 0) co_await self.clock.sleep(milliseconds(1));
  }(*this));
  const auto next = send({.target = url("/echo")});
  EXPECT_TRUE(next && *next) << "a new connection";
  EXPECT_EQ(seen.connections, 2U);
  const auto late = send({.target = url("/never"), .timeout = milliseconds(200)});
  ASSERT_TRUE(late && !*late);
  EXPECT_THAT(late->error().message, HasSubstr("no answer")) << "who waits uses it";
  EXPECT_EQ(seen.connections, 2U);
}

TEST_F(Http2Test, WhoIsCancelledIsTakenOffAlone) {
  run([](Http2Test& self) -> Task<> {
    Answer kept;
    Answer dropped;
    {
      const auto waits =
          spawn(self.executor, keep(*self.pool, {.target = self.url("/never")}, dropped));
      while (self.seen.under_way == 0) co_await self.clock.sleep(milliseconds(1));
    }
    while (self.seen.given_up == 0) co_await self.clock.sleep(milliseconds(1));
    co_await keep(*self.pool, {.target = self.url("/echo")}, kept);
    EXPECT_TRUE(kept && *kept);
    EXPECT_FALSE(dropped);
  }(*this));
  EXPECT_EQ(seen.connections, 1U);
}

TEST_F(Http2Test, AnAnswerThatIsTooLongIsRefused) {
  pool = make_pool({.ca_pem = authority.certificate_pem, .max_body = kLong - 1});
  const auto got = send({.target = url("/long")});
  ASSERT_TRUE(got && !*got);
  EXPECT_EQ(got->error().reason, Reason::kDecode);
  EXPECT_THAT(got->error().message, HasSubstr("longer than 2999999 bytes"));
}

TEST_F(Http2Test, WhatIsNotForItGoesAnotherWay) {
  EXPECT_FALSE(send({.target = "http://127.0.0.1:1/"})) << "no TLS";
  EXPECT_FALSE(send({.target = url("/echo"), .headers = {{"X", "a\r\nY: b"}}})) << "no field";
  EXPECT_TRUE(send({.target = url("/echo")}));
  EXPECT_FALSE(send({.target = "https://localhost:1/"})) << "another server";
  pool = make_pool({});
  EXPECT_FALSE(send({.target = url("/echo")})) << "a server that we do not trust";
}

TEST_F(Http2Test, AServerOfHttp1IsAskedOnce) {
  const auto own = issue_own();
  auto server = start_server(
      executor, {.certificate_pem = own.certificate_pem, .key_pem = own.key_pem},
      [](Exchange& x) -> Task<> { (void)co_await x.respond({.body = "by HTTP/1.1"}); });
  ASSERT_TRUE(server);
  const auto target = fmt::format("https://127.0.0.1:{}/", (*server)->port());
  EXPECT_FALSE(send({.target = target}));
  EXPECT_FALSE(send({.target = target}));
}

// A Transport shares connections as soon as two requests are under way.
TEST_F(Http2Test, TheTransportUsesItForAllButOne) {
  const auto transport = make_transport(executor, {.ca_pem = authority.certificate_pem});
  const auto ask = [](Transport& t, std::string target) -> Task<> {
    (void)co_await t.send({.target = std::move(target), .timeout = seconds(2)});
  };
  std::vector<Task<>> tasks;
  for (int i = 0; i < 20; ++i) tasks.push_back(ask(*transport, url("/never")));
  run(all(std::move(tasks)));
  EXPECT_EQ(seen.most_at_once, 19U);
  EXPECT_EQ(seen.connections, 1U) << "of HTTP/2; the other has failed, this server has no other";
}

}  // namespace
}  // namespace grapnel::http
