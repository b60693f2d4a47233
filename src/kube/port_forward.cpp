#include "kube/port_forward.h"

#include <algorithm>
#include <deque>

namespace grapnel::kube {
namespace {

// If the reader is slow, the rest is held back at the server.
constexpr size_t kAhead = size_t{1} << 20;
// Longer pieces would hold up the other connections.
constexpr size_t kLongestPiece = size_t{64} << 10;

}  // namespace

// What has arrived for one connection and was not read yet. The stream with its errors has the
// number right before the stream with its bytes.
struct PortForward::Incoming {
  explicit Incoming(Executor executor) : changed(std::move(executor)) {}
  std::deque<std::string> pieces;
  size_t waiting = 0;  // bytes in `pieces`
  std::string error;
  bool finished = false;        // the pod sends no more
  bool error_finished = false;  // nor says why
  Signal changed;
};

PortForward::PortForward(Executor executor, std::unique_ptr<http::WebSocket> socket)
    : executor_(std::move(executor)), socket_(std::move(socket)) {}
PortForward::~PortForward() = default;

PortForward::Incoming* PortForward::of_stream(uint32_t stream) {
  const auto found = incoming_.lower_bound(stream);  // its own, or the one right after
  if (found == incoming_.end() || found->first - stream > 2) return nullptr;
  return found->second.get();
}

Task<Error> PortForward::run() {
  Error why{.reason = Reason::kTransport, .message = "the connection to the pod is lost"};
  for (;;) {
    auto message = co_await socket_->read();
    if (!message) {
      why = std::move(message.error());
      break;
    }
    if (message->closed) break;
    reader_.feed(message->data);
    if (auto taken = co_await take_frames(); !taken) {
      why = std::move(taken.error());
      break;
    }
  }
  gone_ = true;
  for (auto& [stream, incoming] : incoming_) incoming->changed.notify_all();
  co_return why;
}

Task<Result<>> PortForward::take_frames() {
  for (;;) {
    auto frame = reader_.next();
    if (!frame) co_return fail(std::move(frame.error()));
    if (!*frame) co_return Result<>();
    if (auto* data = std::get_if<http::SpdyData>(&**frame)) {
      co_await take(std::move(*data));
    } else if (const auto* reset = std::get_if<http::SpdyReset>(&**frame)) {
      if (Incoming* incoming = of_stream(reset->stream)) {
        if (incoming->error.empty()) incoming->error = "the connection was reset";
        incoming->finished = incoming->error_finished = true;
        incoming->changed.notify_all();
      }
    } else if (const auto* ping = std::get_if<http::SpdyPing>(&**frame)) {
      const std::string answer = writer_.ping(ping->id);
      if (auto sent = co_await socket_->write(answer); !sent) co_return sent;
    } else if (std::holds_alternative<http::SpdyGoAway>(**frame)) {
      co_return fail(Reason::kTransport, "the connection to the pod is lost");
    }
  }
}

Task<> PortForward::take(http::SpdyData data) {
  Incoming* incoming = of_stream(data.stream);
  if (incoming == nullptr) co_return;
  if (!incoming_.contains(data.stream)) {
    incoming->error += data.data;
    incoming->error_finished = incoming->error_finished || data.finished;
    incoming->changed.notify_all();
    co_return;
  }
  incoming->waiting += data.data.size();
  if (!data.data.empty()) incoming->pieces.push_back(std::move(data.data));
  incoming->finished = incoming->finished || data.finished;
  incoming->changed.notify_all();
  // Looked up again after each wait: its connection may have been given up.
  while ((incoming = of_stream(data.stream)) != nullptr && incoming->waiting > kAhead) {
    co_await incoming->changed.wait();
  }
}

Task<Result<std::unique_ptr<PortForward::Connection>>> PortForward::connect(uint16_t port) {
  const uint32_t error_stream = next_stream_;
  const uint32_t data_stream = next_stream_ + 2;
  next_stream_ += 4;
  incoming_.emplace(data_stream, std::make_unique<Incoming>(executor_));
  auto connection = std::make_unique<Connection>(*this, data_stream);
  std::map<std::string, std::string> headers{{"streamtype", "error"},
                                             {"port", std::to_string(port)},
                                             {"requestid", std::to_string(error_stream)}};
  std::string frames = writer_.open(error_stream, headers);
  frames += writer_.data(error_stream, "", true);  // errors come from the other end alone
  headers["streamtype"] = "data";
  frames += writer_.open(data_stream, headers);
  if (auto sent = co_await socket_->write(frames); !sent) co_return fail(std::move(sent.error()));
  co_return connection;
}

PortForward::Connection::~Connection() {
  owner_.incoming_.erase(stream_);
}

Task<Result<std::string>> PortForward::Connection::read() {
  Incoming& incoming = *owner_.incoming_.at(stream_);
  while (incoming.pieces.empty() && !(incoming.finished && incoming.error_finished) &&
         !owner_.gone_) {
    co_await incoming.changed.wait();
  }
  if (!incoming.pieces.empty()) {
    std::string next = std::move(incoming.pieces.front());
    incoming.pieces.pop_front();
    incoming.waiting -= next.size();
    incoming.changed.notify_all();
    co_return next;
  }
  if (!incoming.error.empty()) co_return fail(Reason::kTransport, "{}", incoming.error);
  if (!incoming.finished) {
    co_return fail(Reason::kTransport, "the connection to the pod is lost");
  }
  co_return std::string();
}

Task<Result<>> PortForward::Connection::write(std::string_view data) {
  while (!data.empty()) {
    const std::string frame = owner_.writer_.data(stream_, data.substr(0, kLongestPiece));
    data.remove_prefix(std::min(data.size(), kLongestPiece));
    if (auto sent = co_await owner_.socket_->write(frame); !sent) co_return sent;
  }
  co_return Result<>();
}

Task<Result<>> PortForward::Connection::finish_writing() {
  const std::string frame = owner_.writer_.data(stream_, "", true);
  co_return co_await owner_.socket_->write(frame);
}

Task<> PortForward::Connection::reset() {
  const std::string frame = owner_.writer_.reset(stream_);
  (void)co_await owner_.socket_->write(frame);
}

}  // namespace grapnel::kube
