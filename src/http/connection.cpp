#include "http/connection.h"

#include <algorithm>
#include <boost/asio/error.hpp>
#include <boost/beast/http/status.hpp>
#include <ctime>

#include "http/request_parser.h"
#include "http/run_handler.h"
#include "http/upgrade.h"

namespace grapnel::http {
namespace {

namespace asio = boost::asio;

using Progress = RequestParser::Progress;

constexpr size_t kReadAhead = 64UL << 10;

Instant in(Duration length) {
  return std::chrono::time_point_cast<Duration>(std::chrono::steady_clock::now()) + length;
}

// "Sun, 06 Nov 1994 08:49:37 GMT"
std::string http_date() {
  static constexpr const char* kDays[] = {"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"};
  static constexpr const char* kMonths[] = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                            "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
  const std::time_t now = std::time(nullptr);
  std::tm t{};
  gmtime_r(&now, &t);
  return fmt::format("{}, {:02} {} {} {:02}:{:02}:{:02} GMT", kDays[t.tm_wday], t.tm_mday,
                     kMonths[t.tm_mon], t.tm_year + 1900, t.tm_hour, t.tm_min, t.tm_sec);
}

// A line break in a header would be a second header.
void append_field(std::string& out, std::string_view name, std::string_view value) {
  const auto add = [&out](std::string_view text) {
    for (const char c : text) out += (c == '\r' || c == '\n' || c == '\0') ? ' ' : c;
  };
  add(name);
  out += ": ";
  add(value);
  out += "\r\n";
}

Error closed_error(const ErrorCode& error) {
  return Error{.reason = Reason::kTransport,
               .message = fmt::format("the client has gone: {}", error.message())};
}

}  // namespace

Connection::Connection(std::shared_ptr<const ServerShared> server, std::shared_ptr<Channel> channel,
                       std::string peer)
    : server_(std::move(server)), channel_(std::move(channel)), peer_(std::move(peer)) {}

Connection::~Connection() = default;

void Connection::close() {
  if (channel_) channel_->close();
}

Task<> Connection::run() {
  idle_ = true;
  channel_->set_deadline(in(server_->options.header_timeout));
  if (co_await channel_->handshake()) co_return;
  idle_ = false;
  while (keep_alive_ && !server_->stopping) {
    if (!co_await read_request()) co_return;
    channel_->clear_deadline();
    co_await call_handler();
    if (answer_ == Answer::kUpgraded) co_return;
    if (answer_ != Answer::kWhole) {
      channel_->close();  // an answer cut short must not look whole
      co_return;
    }
    request_ = {};
  }
  co_await say_goodbye();
}

// False: the client has gone, or was idle for too long.
Task<bool> Connection::wait_for_request() {
  if (!buffer_.empty()) co_return true;
  buffer_.shrink_to_fit();
  idle_ = true;
  channel_->set_deadline(in(server_->options.idle_timeout));
  const auto first = co_await channel_->append_to(buffer_, kReadAhead);
  idle_ = false;
  if (!first.error && first.count != 0) co_return true;
  channel_->set_deadline(in(seconds(1)));
  co_await channel_->finish_writing();
  co_return false;
}

// False: there is no request and will be none.
Task<bool> Connection::read_request() {
  if (!co_await wait_for_request()) co_return false;
  const auto parser = std::make_unique<RequestParser>(server_->options.max_body);
  answer_ = Answer::kNone;
  auto progress = parser->parse_header(buffer_);
  if (progress == Progress::kNeedsMore) {
    channel_->set_deadline(in(server_->options.header_timeout));
    while (progress == Progress::kNeedsMore) {
      if (!co_await read_more("the header did not come in time")) co_return false;
      progress = parser->parse_header(buffer_);
    }
  }
  if (progress == Progress::kDone) {
    keep_alive_ = parser->keep_alive();
    http_1_0_ = parser->is_http_1_0();
    const bool asks = !http_1_0_ && parser->headers().has("Expect");
    progress = parser->parse_body(buffer_);
    if (progress == Progress::kNeedsMore && asks && buffer_.empty()) {
      if (co_await channel_->write("HTTP/1.1 100 Continue\r\n\r\n")) co_return false;
    }
  }
  const Duration patience = server_->options.header_timeout;
  const Instant last_moment = in(patience * 10);
  while (progress == Progress::kNeedsMore) {
    channel_->set_deadline(std::min(in(patience), last_moment));
    if (!co_await read_more("the body did not come in time")) co_return false;
    progress = parser->parse_body(buffer_);
  }
  if (progress == Progress::kRefused) {
    co_await refuse(parser->refusal(), parser->reason());
    co_return false;
  }
  request_ = parser->take_request();
  co_return true;
}

Task<bool> Connection::read_more(std::string_view when_late) {
  const auto more = co_await channel_->append_to(buffer_, kReadAhead);
  if (more.error == asio::error::timed_out) co_await refuse(408, std::string(when_late));
  co_return !more.error && more.count != 0;
}

Task<> Connection::refuse(int status, std::string reason) {
  keep_alive_ = false;
  channel_->set_deadline(in(seconds(10)));
  answer_ = Answer::kNone;
  (void)co_await respond({.status = status,
                          .headers = {{"Content-Type", "text/plain; charset=utf-8"}},
                          .body = reason + "\n"});
  co_await say_goodbye();
}

Task<> Connection::call_handler() {
  co_await run_handler(server_->handler, *this);
  if (answer_ == Answer::kNone) {
    (void)co_await respond({.status = 500,
                            .headers = {{"Content-Type", "text/plain; charset=utf-8"}},
                            .body = "no answer\n"});
  }
}

// Closing while there are unread bytes would reset the connection, and the client could lose the
// answer. So the client gets a moment to read it and to close first.
Task<> Connection::say_goodbye() {
  channel_->set_deadline(in(seconds(2)));
  co_await channel_->finish_writing();
  buffer_.clear();
  size_t discarded = 0;
  while (discarded < (16UL << 20)) {
    const auto rest = co_await channel_->append_to(buffer_, kReadAhead);
    if (rest.error || rest.count == 0) break;
    discarded += rest.count;
    buffer_.clear();
  }
}

Task<Result<>> Connection::send(std::string_view bytes) {
  if (const auto error = co_await channel_->write(bytes)) {
    answer_ = Answer::kBroken;
    co_return fail(closed_error(error));
  }
  co_return Result<>();
}

Result<> Connection::claim() {
  if (answer_ != Answer::kNone) return fail(Reason::kUsage, "the request is answered already");
  return {};
}

bool Connection::answer_has_body(int status) const {
  return request_.method != "HEAD" && status >= 200 && status != 204 && status != 304;
}

std::string Connection::head_of(const Response& response, std::optional<size_t> length) const {
  namespace http = boost::beast::http;
  const auto reason = http::obsolete_reason(http::int_to_status(response.status));
  std::string out = fmt::format("HTTP/1.1 {} {}\r\n", response.status,
                                std::string_view(reason.data(), reason.size()));
  for (const auto& [name, value] : response.headers) {
    const Headers one{{name, ""}};
    if (one.has("Content-Length") || one.has("Transfer-Encoding") || one.has("Connection")) {
      if (response.status != 101) continue;  // these follow from how it is sent
    }
    append_field(out, name, value);
  }
  if (!response.headers.has("Date")) append_field(out, "Date", http_date());
  if (response.status == 101) return out + "\r\n";
  if (length && response.status != 204)
    append_field(out, "Content-Length", std::to_string(*length));
  if (chunked_) append_field(out, "Transfer-Encoding", "chunked");
  if (!keep_alive_ || server_->stopping) {
    append_field(out, "Connection", "close");
  } else if (http_1_0_) {
    append_field(out, "Connection", "keep-alive");
  }
  return out + "\r\n";
}

Task<Result<>> Connection::respond(Response response) {
  if (auto ok = claim(); !ok) co_return ok;
  answer_ = Answer::kStarted;
  chunked_ = false;
  std::string out = head_of(response, response.body.size());
  const bool has_body = answer_has_body(response.status);
  if (has_body && response.body.size() < (64UL << 10)) {
    out += response.body;
    response.body.clear();
  }
  if (auto ok = co_await send(out); !ok) co_return ok;
  if (has_body) {
    if (auto ok = co_await send(response.body); !ok) co_return ok;
  }
  answer_ = Answer::kWhole;
  co_return Result<>();
}

Task<Result<>> Connection::begin(Response head) {
  if (auto ok = claim(); !ok) co_return ok;
  answer_ = Answer::kStarted;
  has_body_ = answer_has_body(head.status);
  chunked_ = has_body_ && !http_1_0_;
  if (has_body_ && http_1_0_) keep_alive_ = false;  // its end is the end of the connection
  std::string out = head_of(head, std::nullopt);
  co_return co_await send(out);
}

Task<Result<>> Connection::write(std::string_view chunk) {
  if (answer_ != Answer::kStarted) co_return fail(Reason::kUsage, "no streamed answer is open");
  if (chunk.empty() || !has_body_) co_return Result<>();
  if (chunked_) co_return co_await send(fmt::format("{:x}\r\n{}\r\n", chunk.size(), chunk));
  co_return co_await send(chunk);
}

Task<Result<>> Connection::finish() {
  if (answer_ != Answer::kStarted) co_return fail(Reason::kUsage, "no streamed answer is open");
  if (chunked_) {
    if (auto ok = co_await send("0\r\n\r\n"); !ok) co_return ok;
  }
  answer_ = Answer::kWhole;
  co_return Result<>();
}

Task<Result<std::unique_ptr<ByteStream>>> Connection::upgrade(Headers headers) {
  if (auto ok = claim(); !ok) co_return fail(ok.error());
  answer_ = Answer::kStarted;
  const std::string out = head_of({.status = 101, .headers = std::move(headers)}, std::nullopt);
  if (auto ok = co_await send(out); !ok) co_return fail(ok.error());
  answer_ = Answer::kUpgraded;
  channel_->unread(std::exchange(buffer_, {}));
  co_return make_byte_stream(channel_);
}

Task<Result<std::unique_ptr<WebSocket>>> Connection::accept_websocket(std::string subprotocol) {
  if (auto ok = claim(); !ok) co_return fail(ok.error());
  answer_ = Answer::kUpgraded;
  channel_->unread(std::exchange(buffer_, {}));
  co_return co_await accept_websocket_on(channel_, request_, std::move(subprotocol));
}

Task<> Connection::closed() {
  while (buffer_.size() < kReadAhead) {
    // What arrives may already be the next request: keep it.
    const auto more = co_await channel_->append_to(buffer_, kReadAhead - buffer_.size());
    if (more.error || more.count == 0) co_return;
  }
  co_await channel_->wait_for_hangup();
}

}  // namespace grapnel::http
