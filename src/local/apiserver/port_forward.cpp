#include "local/apiserver/port_forward.h"

#include <charconv>
#include <deque>
#include <map>

#include "base/strings.h"
#include "http/spdy.h"
#include "local/apiserver/reply.h"

namespace grapnel::local {
namespace {

constexpr std::string_view kProtocol = "SPDY/3.1+portforward.k8s.io";
// If the pod is slow to read, data waits at the client, not here.
constexpr size_t kAhead = size_t{1} << 20;

bool offers_protocol(const http::Request& request) {
  for (const auto theirs : split(request.headers.get("Sec-WebSocket-Protocol"), ',')) {
    if (trim(theirs) == kProtocol) return true;
  }
  return false;
}

// One connection of the client to one port.
struct Forward {
  explicit Forward(Executor executor) : changed(executor) {}

  uint32_t error_stream = 0;
  uint32_t data_stream = 0;
  uint16_t port = 0;
  std::deque<std::string> to_pod;
  size_t waiting = 0;     // bytes in to_pod
  bool finished = false;  // the client will send no more
  bool over = false;
  Signal changed;  // any of the above
  Spawned work;
};

class Session {
 public:
  Session(Api& api, const Call& call, http::WebSocket& socket)
      : api_(api), ns_(call.info.ns), pod_(call.info.name), socket_(socket) {}

  // Until the client has gone.
  Task<> run() {
    for (bool goes_on = true; goes_on;) {
      const auto message = co_await socket_.read();
      if (!message || message->closed) break;
      reader_.feed(message->data);
      goes_on = co_await take_frames();
    }
    for (auto& [id, forward] : forwards_) forward->work.cancel();
    for (auto& [id, forward] : forwards_) co_await forward->work.join();
  }

 private:
  Task<bool> take_frames() {
    for (;;) {
      auto frame = reader_.next();
      if (!frame) co_return false;
      if (!*frame) co_return true;
      if (std::holds_alternative<http::SpdyGoAway>(**frame)) co_return false;
      co_await std::visit([this](auto& f) { return take(std::move(f)); }, **frame);
      std::erase_if(forwards_,
                    [](const auto& f) { return f.second->over && f.second->work.done(); });
    }
  }

  Task<> take(http::SpdyPing ping) { co_await send(writer_.ping(ping.id)); }
  Task<> take(http::SpdyGoAway) { co_return; }
  Task<> take(http::SpdyReset reset) {
    if (const auto forward = of_stream(reset.stream)) forward->work.cancel();
    co_return;
  }
  Task<> take(http::SpdyOpened opened) {
    co_await send(writer_.reply(opened.stream));
    auto& forward = forwards_[opened.headers["requestid"]];
    if (!forward) forward = std::make_shared<Forward>(api_.executor);
    if (opened.headers["streamtype"] == "error") {
      forward->error_stream = opened.stream;
      co_return;
    }
    const auto& port = opened.headers["port"];
    std::from_chars(port.data(), port.data() + port.size(), forward->port);
    forward->data_stream = opened.stream;
    forward->work = spawn(api_.executor, carry(forward));
  }
  Task<> take(http::SpdyData data) {
    const auto forward = of_stream(data.stream);
    if (!forward || data.stream != forward->data_stream) co_return;
    if (!data.data.empty()) {
      forward->waiting += data.data.size();
      forward->to_pod.push_back(std::move(data.data));
    }
    if (data.finished) forward->finished = true;
    forward->changed.notify_all();
    while (forward->waiting > kAhead && !forward->over) co_await forward->changed.wait();
  }

  std::shared_ptr<Forward> of_stream(uint32_t stream) const {
    for (const auto& [id, forward] : forwards_) {
      if (forward->data_stream == stream || forward->error_stream == stream) return forward;
    }
    return nullptr;
  }

  // Both ways, until the pod's end is closed.
  Task<> carry(std::shared_ptr<Forward> forward) {
    auto connection = co_await api_.pods->connect(ns_, pod_, forward->port);
    std::string error;
    if (connection) {
      auto sending = spawn(api_.executor, send_to_pod(forward, **connection));
      for (;;) {
        const auto piece = co_await (*connection)->read();
        if (!piece || piece->empty()) break;
        co_await send(writer_.data(forward->data_stream, *piece));
      }
      sending.cancel();
      co_await sending.join();
    } else {
      error = fmt::format("error forwarding port {} to pod {}: {}", forward->port, pod_,
                          connection.error().message);
    }
    forward->over = true;
    forward->changed.notify_all();
    co_await send(writer_.data(forward->error_stream, error, true));
    co_await send(writer_.data(forward->data_stream, "", true));
  }

  static Task<> send_to_pod(std::shared_ptr<Forward> forward, PodConnection& connection) {
    for (;;) {
      while (forward->to_pod.empty() && !forward->finished) co_await forward->changed.wait();
      if (forward->to_pod.empty()) break;
      const std::string next = std::move(forward->to_pod.front());
      forward->to_pod.pop_front();
      if (auto written = co_await connection.write(next); !written) break;
      forward->waiting -= next.size();
      forward->changed.notify_all();
    }
    connection.finish_writing();
  }

  // That the client has gone is noticed where we read from it.
  Task<> send(std::string bytes) { (void)co_await socket_.write(bytes); }

  Api& api_;
  std::string ns_;
  std::string pod_;
  http::WebSocket& socket_;
  http::SpdyReader reader_;
  http::SpdyWriter writer_;
  std::map<std::string, std::shared_ptr<Forward>> forwards_;  // by the client's number
};

}  // namespace

Task<> serve_port_forward(Api& api, const Call& call, http::Exchange& exchange) {
  if (!offers_protocol(exchange.request())) {
    co_await respond_error(
        exchange, bad_request(fmt::format(
                      "portforward is served over WebSocket alone: upgrade to {}", kProtocol)));
    co_return;
  }
  auto socket = co_await exchange.accept_websocket(std::string(kProtocol));
  if (!socket) co_return;
  Session session(api, call, **socket);
  co_await session.run();
  co_await (*socket)->close();
}

}  // namespace grapnel::local
