#include "http/websocket.h"

#include <algorithm>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/async_result.hpp>
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/buffers_iterator.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/beast/core/buffers_to_string.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http/empty_body.hpp>
#include <boost/beast/http/message.hpp>
#include <boost/beast/http/string_body.hpp>
#include <boost/beast/websocket/error.hpp>
#include <boost/beast/websocket/rfc6455.hpp>
#include <boost/beast/websocket/stream.hpp>

#include "http/channel.h"
#include "http/upgrade.h"

namespace grapnel::http {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace ws = boost::beast::websocket;

constexpr size_t kMaxMessage = 64UL << 20;

struct Transferred {
  ErrorCode error;
  size_t count = 0;
};

Task<Transferred> read_some(std::shared_ptr<Channel> channel, asio::mutable_buffer target) {
  if (target.size() == 0) co_return Transferred{};
  const auto read = co_await channel->read(static_cast<char*>(target.data()), target.size());
  if (!read.error && read.count == 0) co_return Transferred{asio::error::eof, 0};
  co_return Transferred{read.error, read.count};
}

Task<Transferred> write_some(std::shared_ptr<Channel> channel, std::string data) {
  const auto error = co_await channel->write(data);
  co_return Transferred{error, error ? 0 : data.size()};
}

// A Channel as Beast wants its streams. Its coroutines are run as operations, with the cancellation
// of the operation above.
class BeastStream {
 public:
  using executor_type = Executor;
  explicit BeastStream(std::shared_ptr<Channel> channel) : channel_(std::move(channel)) {}
  executor_type get_executor() const { return channel_->executor(); }
  Channel& channel() { return *channel_; }

  template <class Buffers, class Token>
  auto async_read_some(const Buffers& buffers, Token&& token) {
    asio::mutable_buffer target;
    for (auto it = asio::buffer_sequence_begin(buffers); it != asio::buffer_sequence_end(buffers);
         ++it) {
      target = *it;
      if (target.size() != 0) break;
    }
    return run([channel = channel_, target] { return read_some(channel, target); }, token);
  }

  template <class Buffers, class Token>
  auto async_write_some(const Buffers& buffers, Token&& token) {
    // A frame's head and body in one piece: one system call, one packet.
    std::string data = beast::buffers_to_string(beast::buffers_prefix(256UL << 10, buffers));
    return run([channel = channel_, text = std::move(data)] { return write_some(channel, text); },
               token);
  }

 private:
  template <class Make, class Token>
  auto run(Make make, Token& token) {
    return asio::async_initiate<Token, void(ErrorCode, size_t)>(
        [executor = get_executor()](auto handler, Make make_task) {
          const auto slot = asio::get_associated_cancellation_slot(handler);
          asio::co_spawn(executor, make_task(),
                         asio::bind_cancellation_slot(
                             slot, [h = std::move(handler)](const std::exception_ptr& failed,
                                                            Transferred done) mutable {
                               if (failed) done = {asio::error::operation_aborted, 0};
                               std::move(h)(done.error, done.count);
                             }));
        },
        token, std::move(make));
  }

  std::shared_ptr<Channel> channel_;
};

// Found by Beast by their names.
void beast_close_socket(BeastStream& stream) {
  stream.channel().close();
}

template <class Handler>
void async_teardown(beast::role_type, BeastStream& stream, Handler&& handler) {
  stream.channel().close();
  asio::post(stream.get_executor(),
             beast::bind_front_handler(std::forward<Handler>(handler), ErrorCode()));
}

using Stream = ws::stream<BeastStream, false>;

struct Session {
  explicit Session(std::shared_ptr<Channel> channel_in)
      : channel(channel_in), stream(std::move(channel_in)), turn(channel->executor(), 1) {
    stream.auto_fragment(false);
    stream.read_message_max(kMaxMessage);
    // No idle time-out: a shell may be silent for hours. TCP's keep-alive finds dead peers.
    stream.set_option(ws::stream_base::timeout{.handshake_timeout = seconds(30),
                                               .idle_timeout = ws::stream_base::none(),
                                               .keep_alive_pings = false});
  }
  std::shared_ptr<Channel> channel;
  Stream stream;
  Semaphore turn;  // Beast takes one write at a time
  std::string subprotocol;
};

Failure transport_failure(const ErrorCode& error) {
  return fail(Reason::kTransport, "WebSocket: {}", error.message());
}

Task<Result<WebSocket::Message>> read_message(std::shared_ptr<Session> session) {
  beast::flat_buffer buffer;
  const auto [error, count] =
      co_await session->stream.async_read(buffer, asio::as_tuple(asio::use_awaitable));
  if (error == ws::error::closed) co_return WebSocket::Message{.closed = true};
  if (error) co_return transport_failure(error);
  co_return WebSocket::Message{.binary = session->stream.got_binary(),
                               .data = beast::buffers_to_string(buffer.data())};
}

Task<Result<>> write_message(std::shared_ptr<Session> session, std::string_view data, bool binary) {
  const auto permit = co_await session->turn.acquire();
  session->stream.binary(binary);
  const auto [error, count] = co_await session->stream.async_write(
      asio::buffer(data.data(), data.size()), asio::as_tuple(asio::use_awaitable));
  if (error) co_return transport_failure(error);
  co_return Result<>();
}

Task<> send_close(std::shared_ptr<Session> session) {
  const auto [error] = co_await session->stream.async_close(ws::close_code::normal,
                                                            asio::as_tuple(asio::use_awaitable));
  (void)error;
}

Task<> close_session(std::shared_ptr<Session> session) {
  if (session->stream.is_open()) {
    const Instant deadline = system_clock().instant() + seconds(5);
    co_await with_deadline(system_clock(), deadline, send_close(session));
  }
  session->channel->close();
}

class BeastWebSocket final : public WebSocket {
 public:
  explicit BeastWebSocket(std::shared_ptr<Session> session) : session_(std::move(session)) {}
  ~BeastWebSocket() override { session_->channel->close(); }

  // Each keeps the session: the socket may be destroyed while another Task reads.
  Task<Result<Message>> read() override { return read_message(session_); }
  Task<Result<>> write(std::string_view data, bool binary) override {
    return write_message(session_, data, binary);
  }
  Task<> close() override { return close_session(session_); }
  std::string_view subprotocol() const override { return session_->subprotocol; }

 private:
  std::shared_ptr<Session> session_;
};

}  // namespace

Task<Result<std::unique_ptr<WebSocket>>> accept_websocket_on(std::shared_ptr<Channel> channel,
                                                             Request request,
                                                             std::string subprotocol) {
  const auto session = std::make_shared<Session>(std::move(channel));
  beast::http::request<beast::http::empty_body> handshake;
  handshake.method_string(request.method);
  handshake.target(request.target);
  handshake.version(11);
  for (const auto& [name, value] : request.headers) handshake.insert(name, value);
  session->subprotocol = subprotocol;
  session->stream.set_option(
      ws::stream_base::decorator([protocol = std::move(subprotocol)](ws::response_type& answer) {
        if (!protocol.empty()) answer.set(beast::http::field::sec_websocket_protocol, protocol);
      }));
  const auto [error] =
      co_await session->stream.async_accept(handshake, asio::as_tuple(asio::use_awaitable));
  if (error) {
    session->channel->close();
    co_return fail(Reason::kBadRequest, "not a WebSocket handshake: {}", error.message());
  }
  co_return std::make_unique<BeastWebSocket>(session);
}

namespace {

// "wss://host:1/path?x" as what connects, what the Host header says, and what is asked for.
struct WebSocketUrl {
  std::string connect_to;
  std::string host;
  std::string target;
};

Result<WebSocketUrl> split_url(std::string_view url) {
  const size_t mark = url.find("://");
  if (mark == std::string_view::npos) return fail(Reason::kUsage, "not a URL: '{}'", url);
  std::string_view scheme = url.substr(0, mark);
  if (scheme == "ws") scheme = "http";
  if (scheme == "wss") scheme = "https";
  const std::string_view rest = url.substr(mark + 3);
  const size_t end = std::min(rest.find_first_of("/?#"), rest.size());
  std::string target(rest.substr(end, rest.find('#') - end));
  if (!target.starts_with('/')) target.insert(0, "/");
  return WebSocketUrl{fmt::format("{}://{}", scheme, rest), std::string(rest.substr(0, end)),
                      std::move(target)};
}

Failure refusal(const ws::response_type& answer) {
  Error error{.reason = Reason::kUnknown,
              .message = answer.body(),
              .code = static_cast<int>(answer.result_int())};
  if (error.message.empty()) {
    error.message = fmt::format("the server refused the WebSocket with status {}", error.code);
  }
  return fail(std::move(error));
}

std::string offer_of(const std::vector<std::string>& subprotocols) {
  std::string out;
  for (const std::string& name : subprotocols) out += (out.empty() ? "" : ", ") + name;
  return out;
}

}  // namespace

Task<Result<std::unique_ptr<WebSocket>>> connect_websocket(Executor executor, ClientOptions options,
                                                           Request request,
                                                           std::vector<std::string> subprotocols) {
  const Duration timeout = std::clamp<Duration>(request.timeout, Duration::zero(), hours(24));
  const Instant deadline = system_clock().instant() + timeout;
  const auto url = split_url(request.target);
  if (!url) co_return fail(url.error());
  request.target = url->connect_to;
  const Headers headers = request.headers;
  auto channel = co_await connect_channel(executor, std::move(options), std::move(request));
  if (!channel) co_return fail(channel.error());

  const auto session = std::make_shared<Session>(std::move(*channel));
  session->channel->set_deadline(deadline);
  session->stream.set_option(ws::stream_base::decorator(
      [headers, offer = offer_of(subprotocols)](ws::request_type& handshake) {
        for (const auto& [name, value] : headers) handshake.set(name, value);
        if (!offer.empty()) handshake.set(beast::http::field::sec_websocket_protocol, offer);
      }));
  ws::response_type answer;
  const auto [error] = co_await session->stream.async_handshake(
      answer, url->host, url->target, asio::as_tuple(asio::use_awaitable));
  if (error == ws::error::upgrade_declined) co_return refusal(answer);
  if (error) co_return transport_failure(error);
  session->channel->clear_deadline();
  const auto chosen = answer[beast::http::field::sec_websocket_protocol];
  session->subprotocol.assign(chosen.data(), chosen.size());
  if (!chosen.empty() &&
      std::ranges::find(subprotocols, session->subprotocol) == subprotocols.end()) {
    co_return fail(Reason::kTransport, "WebSocket: the server chose '{}', which was not offered",
                   session->subprotocol);
  }
  co_return std::make_unique<BeastWebSocket>(session);
}

}  // namespace grapnel::http
