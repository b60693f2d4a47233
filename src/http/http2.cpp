#include "http/http2.h"

#include <algorithm>

#include "http/exchange.h"
#include "http/http2_connection.h"
#include "http/upgrade.h"

namespace grapnel::http {
namespace {

constexpr size_t kConnections = 16;
// With this many requests on one connection, opening another one is worth it. A server such as
// kube-apiserver reads the frames of a connection one by one, and does other work in between: with
// all of a burst on four connections, some requests were received half a second late.
constexpr size_t kBusy = 24;
constexpr Duration kConnectTimeout = seconds(5);
constexpr Duration kPause = seconds(10);  // after a connection failed

}  // namespace

Http2Pool::Http2Pool(Executor executor, std::shared_ptr<const ClientOptions> options, Duration idle)
    : executor_(std::move(executor)),
      options_(std::move(options)),
      idle_(idle),
      connected_(executor_) {}

Http2Pool::~Http2Pool() {
  for (const auto& connection : connections_) connection->close();
}

Task<std::optional<Result<Response>>> Http2Pool::send(const Request& request) {
  return send_by(shared_from_this(), request);
}

Task<std::optional<Result<Response>>> Http2Pool::send_by(std::shared_ptr<Http2Pool> self,
                                                         const Request& request) {
  const std::string_view origin = split_url(request.target).first;
  if (!origin.starts_with("https://") || !is_sendable(request)) co_return std::nullopt;
  if (self->origin_.empty()) self->origin_ = origin;
  if (self->origin_ != origin) co_return std::nullopt;
  struct Asking {
    explicit Asking(Http2Pool& to) : pool(to) { ++pool.asking_; }
    Asking(const Asking&) = delete;
    Asking& operator=(const Asking&) = delete;
    ~Asking() { --pool.asking_; }
    Http2Pool& pool;
  } asking(*self);
  Choice connection = self->least_busy();
  while (!connection && self->connecting_ > 0) {
    co_await self->connected_.wait();
    connection = self->least_busy();
  }
  if (!connection) co_return std::nullopt;
  co_return co_await Http2Connection::send(std::move(connection), request);
}

Http2Pool::Choice Http2Pool::least_busy() {
  std::erase_if(connections_, [](const Choice& each) {
    const bool is_useless = !each->takes_more() && each->under_way() == 0;
    if (is_useless) each->close();
    return is_useless;
  });
  Choice out;
  for (const Choice& each : connections_) {
    if (!each->takes_more()) continue;
    if (!out || each->under_way() < out->under_way()) out = each;
  }
  // As many as this number of requests is worth, all at once; one more if all are full.
  size_t wanted = (asking_ + kBusy - 1) / kBusy;
  if (!out) wanted = std::max(wanted, connections_.size() + 1);
  wanted = std::min(wanted, kConnections);
  while (connections_.size() + connecting_ < wanted && may_connect()) start_connecting();
  return out;
}

bool Http2Pool::may_connect() const {
  return is_spoken_ && system_clock().instant() >= not_before_;
}

void Http2Pool::start_connecting() {
  ++connecting_;
  std::erase_if(connectors_, [](const Spawned& each) { return each.done(); });
  Request request{.target = origin_ + "/", .timeout = kConnectTimeout};
  connectors_.push_back(
      spawn(executor_, connect(weak_from_this(), executor_, *options_, std::move(request))));
}

Task<> Http2Pool::connect(std::weak_ptr<Http2Pool> weak, Executor executor, ClientOptions options,
                          Request request) {
  const size_t max_body = options.max_body;
  auto channel = co_await connect_http2_channel(executor, std::move(options), std::move(request));
  const auto self = weak.lock();
  if (!self) co_return;
  --self->connecting_;
  if (channel && *channel) {
    self->connections_.push_back(
        Http2Connection::start(std::move(*channel), {.max_body = max_body, .idle = self->idle_}));
  } else if (channel) {
    self->is_spoken_ = false;
  } else {
    self->not_before_ = system_clock().instant() + kPause;
  }
  self->connected_.notify_all();
}

}  // namespace grapnel::http
