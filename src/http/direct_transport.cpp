#include "http/direct_transport.h"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <set>

#include "http/run_handler.h"

namespace grapnel::http {
namespace asio = boost::asio;
namespace {

constexpr size_t kMostUnread = 1UL << 20;  // of a stream; then its writer waits

// "https://host:1/path?query" → "/path?query"
std::string path_and_query(std::string_view url) {
  const auto scheme = url.find("://");
  if (scheme != std::string_view::npos) url.remove_prefix(scheme + 3);
  const auto slash = url.find('/');
  return slash == std::string_view::npos ? "/" : std::string(url.substr(slash));
}

}  // namespace

// A request, and its answer on the way from the handler to the one who asked.
class DirectTransport::Call final : public Exchange {
 public:
  Call(const Executor& executor, Request request)
      : request_(std::move(request)), changed_(executor) {
    request_.target = path_and_query(request_.target);
  }

  const Request& request() const override { return request_; }
  std::string_view peer_address() const override { return "127.0.0.1"; }

  Task<Result<>> respond(Response response) override {
    unread_ = std::move(response.body);
    start(std::move(response));
    complete_ = true;
    co_return Result<>();
  }
  Task<Result<>> begin(Response head) override {
    start(std::move(head));
    co_return Result<>();
  }
  Task<Result<>> write(std::string_view chunk) override {
    while (unread_.size() > kMostUnread && !abandoned_) co_await changed_.wait();
    if (abandoned_) co_return fail(Reason::kTransport, "the client has gone away");
    unread_ += chunk;
    changed_.notify_all();
    co_return Result<>();
  }
  Task<Result<>> finish() override {
    complete_ = true;
    changed_.notify_all();
    co_return Result<>();
  }
  Task<Result<std::unique_ptr<WebSocket>>> accept_websocket(std::string /*subprotocol*/) override {
    co_return fail(Reason::kUsage, "there is no connection to make a WebSocket of");
  }
  Task<Result<std::unique_ptr<ByteStream>>> upgrade(Headers /*headers*/) override {
    co_return fail(Reason::kUsage, "there is no connection to upgrade");
  }
  Task<> closed() override {
    while (!abandoned_) co_await changed_.wait();
  }

  // ---- the side of the one who asked

  // Whether the head of the answer came in time. A plain timer: with_deadline() would throw for
  // each request that is answered.
  Task<bool> begins_before(Instant deadline) {
    asio::steady_timer timer(co_await this_executor(), deadline);
    begun_ = &timer;
    struct Forget {
      asio::steady_timer*& timer;
      ~Forget() { timer = nullptr; }
    } forget{begun_};
    while (!head_ && !ended_) {
      const auto [cancelled] = co_await timer.async_wait(asio::as_tuple(asio::use_awaitable));
      if (!cancelled) co_return false;
    }
    co_return true;
  }
  std::optional<Response>& head() { return head_; }
  Task<Result<std::string>> read() {
    while (unread_.empty() && !complete_ && !ended_) co_await changed_.wait();
    if (unread_.empty() && !complete_)
      co_return fail(Reason::kTransport, "the answer was cut short");
    changed_.notify_all();
    co_return std::exchange(unread_, "");
  }
  void abandon() {
    abandoned_ = true;
    changed_.notify_all();
    running_.cancel();
  }

  void run(Spawned running) { running_ = std::move(running); }
  // The handler has returned, or was cancelled.
  void end() {
    if (!head_ && !abandoned_) {
      start({.status = 500, .body = ""});
      complete_ = true;
    }
    ended_ = true;
    notify();
  }

 private:
  void start(Response head) {
    head_ = std::move(head);
    notify();
  }
  void notify() {
    if (begun_ != nullptr) begun_->cancel();
    changed_.notify_all();
  }

  Request request_;
  std::optional<Response> head_;
  std::string unread_;
  bool complete_ = false;   // nothing is to be written any more
  bool ended_ = false;      // the handler has
  bool abandoned_ = false;  // nobody reads any more
  Signal changed_;
  asio::steady_timer* begun_ = nullptr;
  Spawned running_;
};

// Goes with the last handler and the transport.
struct DirectTransport::Calls {
  Calls(Executor executor_in, Handler handler_in)
      : executor(std::move(executor_in)), handler(std::move(handler_in)), one_ended(executor) {}

  void cut_off() {
    stopped = true;
    for (const auto& call : std::set(running)) call->abandon();
  }

  Executor executor;
  Handler handler;
  std::set<std::shared_ptr<Call>> running;
  Signal one_ended;
  bool stopped = false;
};

class DirectTransport::Body final : public BodyStream {
 public:
  explicit Body(std::shared_ptr<Call> call) : call_(std::move(call)) {}
  Body(const Body&) = delete;
  Body& operator=(const Body&) = delete;
  ~Body() override { call_->abandon(); }
  Task<Result<std::string>> read() override { return call_->read(); }

 private:
  std::shared_ptr<Call> call_;
};

DirectTransport::DirectTransport(Executor executor, Handler handler)
    : calls_(std::make_shared<Calls>(std::move(executor), std::move(handler))) {}

DirectTransport::~DirectTransport() {
  calls_->cut_off();
}

Task<> DirectTransport::serve(std::shared_ptr<Calls> calls, std::shared_ptr<Call> call) {
  struct Ended {
    Calls& calls;
    const std::shared_ptr<Call>& call;
    ~Ended() {
      call->end();
      calls.running.erase(call);
      calls.one_ended.notify_all();
    }
  } ended{*calls, call};
  co_await run_handler(calls->handler, *call);
}

Task<Result<StreamResponse>> DirectTransport::open(const Request& request) {
  if (calls_->stopped) co_return fail(Reason::kTransport, "the server has stopped");
  const Instant deadline = system_clock().instant() + request.timeout;
  const bool reads = request.method == "GET";
  auto call = std::make_shared<Call>(calls_->executor, request);
  auto body = std::make_unique<Body>(call);  // ends the call if we are cancelled
  calls_->running.insert(call);
  call->run(spawn(calls_->executor, serve(calls_, call)));
  const bool in_time = co_await call->begins_before(deadline);
  // Others run before the next step, as they do while an answer is on its way: who asks again and
  // again until it hears of a change must not keep the news from coming.
  co_await asio::post(calls_->executor, asio::use_awaitable);
  if (!in_time || !call->head()) {
    co_return fail(Error{.reason = in_time ? Reason::kTransport : Reason::kTimeout,
                         .message = in_time ? "the server has stopped" : "no answer in time",
                         .ambiguous = !reads});
  }
  co_return StreamResponse{.status = call->head()->status,
                           .headers = std::move(call->head()->headers),
                           .body = std::move(body)};
}

Task<Result<Response>> DirectTransport::send(const Request& request) {
  auto opened = co_await open(request);
  if (!opened) co_return fail(std::move(opened.error()));
  Response answer{.status = opened->status, .headers = std::move(opened->headers), .body = ""};
  for (;;) {
    auto piece = co_await opened->body->read();
    if (!piece) co_return fail(std::move(piece.error()));
    if (piece->empty()) co_return answer;
    answer.body += *piece;
  }
}

Task<> DirectTransport::stop() {
  const auto calls = calls_;
  calls->cut_off();
  while (!calls->running.empty()) co_await calls->one_ended.wait();
}

}  // namespace grapnel::http
