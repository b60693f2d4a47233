#include "tests/simulation/wire.h"

#include <algorithm>
#include <deque>

#include "kube/types/protobuf.h"
#include "tests/simulation/model.h"

namespace grapnel::simulation {
namespace {

bool answers_protobuf(const http::Request& request) {
  return request.headers.get("Accept").starts_with(kube::kProtobuf);
}

Failure lost(bool ambiguous, std::string_view what) {
  return fail(
      Error{.reason = Reason::kTransport, .message = std::string(what), .ambiguous = ambiguous});
}

}  // namespace

// What one request gets back, and whoever waits for it.
struct Wire::Answer {
  Answer(const Executor& executor, VirtualClock& clock_in) : signal(executor), clock(clock_in) {}
  std::optional<Result<http::Response>> result;
  Signal signal;
  VirtualClock& clock;

  void give(Result<http::Response> r) {
    if (result) return;  // the client has given up
    result = std::move(r);
    signal.notify_all();
    clock.touch();
  }
  Task<> wait() {
    while (!result) co_await signal.wait();
  }
};

// One watch on its way: what the server sends arrives in order, each piece when the network lets
// it.
class Stream : public std::enable_shared_from_this<Stream> {
 public:
  Stream(const Executor& executor, VirtualClock& clock, Random& random, const Faults& faults)
      : signal_(executor),
        clock_(clock),
        random_(random),
        faults_(faults),
        lag_(milliseconds(random.below(random.chance(0.2) ? 2000 : 30))) {}

  bool closed() const { return closed_; }
  void close() {
    closed_ = true;
    watch_.reset();
  }

  void fall_silent() { frozen_ = true; }
  bool is_up_to_date() const {
    return !frozen_ && !closed_ && !broken_ && !ended_ && on_the_way_ == 0 && arrived_.empty();
  }

  void begin(std::unique_ptr<Server::Watch> watch, Duration timeout) {
    watch_ = std::move(watch);
    clock_.after(timeout, [weak = weak_from_this()] {
      if (const auto self = weak.lock()) self->schedule("");
    });
    mark_later();
  }

  Task<Result<std::string>> read(std::optional<Duration> idle) {
    asked_ = clock_.instant();
    if (idle && !std::exchange(is_guarded_, true)) guard(*idle);
    while (arrived_.empty() && !broken_) co_await signal_.wait();
    if (arrived_.empty()) co_return fail(*broken_);
    std::string piece = std::move(arrived_.front());
    arrived_.pop_front();
    co_return piece;
  }

  // An empty piece is the end of the stream.
  void schedule(std::string piece) {
    if (closed_ || frozen_ || broken_ || ended_) return;
    const Instant due = clock_.instant() + lag_ + microseconds(random_.below(5000));
    last_ = std::max(last_, due);
    ++on_the_way_;
    clock_.at(last_, [self = shared_from_this(), text = std::move(piece)]() mutable {
      self->arrive(std::move(text));
    });
  }

 private:
  void arrive(std::string piece) {
    --on_the_way_;
    if (closed_ || frozen_ || broken_ || ended_) return;
    if (random_.chance(faults_.stream_frozen)) {
      frozen_ = true;
      return;
    }
    ended_ = piece.empty();
    if (random_.chance(faults_.stream_cut)) {
      arrived_.push_back(piece.substr(0, random_.below(piece.size())));
      if (arrived_.back().empty()) arrived_.pop_back();
      broken_ = Error{.reason = Reason::kTransport, .message = "cut"};
    } else if (piece.size() > 2 && random_.chance(0.05)) {
      const size_t half = 1 + random_.below(piece.size() - 1);
      arrived_.push_back(piece.substr(0, half));
      arrived_.push_back(piece.substr(half));
    } else {
      arrived_.push_back(std::move(piece));
    }
    wake();
  }

  // Who waits for so long gives up. One timer for all reads.
  void guard(Duration idle) {
    clock_.at(asked_ + idle, [weak = weak_from_this(), idle, asked = asked_] {
      const auto self = weak.lock();
      if (!self || self->closed_ || self->broken_) return;
      if (self->asked_ != asked) return self->guard(idle);
      self->broken_ = Error{.reason = Reason::kTransport, .message = "silence"};
      self->wake();
    });
  }

  void wake() {
    signal_.notify_all();
    clock_.touch();
  }

  void mark_later() {
    clock_.after(seconds(5 + random_.below(50)), [weak = weak_from_this()] {
      const auto self = weak.lock();
      if (!self || self->closed_ || self->ended_ || self->broken_) return;
      if (auto bookmark = self->watch_->bookmark(); !bookmark.empty()) {
        self->schedule(std::move(bookmark));
      }
      self->mark_later();
    });
  }

  Signal signal_;
  VirtualClock& clock_;
  Random& random_;
  const Faults& faults_;
  std::unique_ptr<Server::Watch> watch_;
  Duration lag_;
  Instant last_{};
  std::deque<std::string> arrived_;
  std::optional<Error> broken_;
  size_t on_the_way_ = 0;
  bool frozen_ = false;
  bool ended_ = false;
  bool closed_ = false;
  bool is_guarded_ = false;
  Instant asked_{};
};

namespace {

class WatchBody final : public http::BodyStream {
 public:
  WatchBody(std::shared_ptr<Stream> stream, std::optional<Duration> idle)
      : stream_(std::move(stream)), idle_(idle) {}
  ~WatchBody() override { stream_->close(); }
  Task<Result<std::string>> read() override { return stream_->read(idle_); }

 private:
  std::shared_ptr<Stream> stream_;
  std::optional<Duration> idle_;
};

// A body that is there already, in two pieces or cut short.
class TextBody final : public http::BodyStream {
 public:
  TextBody(std::string text, bool cut) : text_(std::move(text)), cut_(cut) {}
  Task<Result<std::string>> read() override {
    if (text_.empty() && cut_) co_return lost(false, "cut");
    std::string piece = text_.substr(0, text_.size() / 2 + 1);
    text_.erase(0, piece.size());
    co_return piece;
  }

 private:
  std::string text_;
  bool cut_;
};

}  // namespace

Wire::Wire(Server& server, VirtualClock& clock, Random& random, const Faults& faults,
           Executor executor, std::string who)
    : server_(server),
      clock_(clock),
      random_(random),
      faults_(faults),
      executor_(std::move(executor)),
      who_(std::move(who)) {}

Wire::~Wire() {
  for (const auto& stream : streams_) stream->close();
}

Duration Wire::delay() {
  if (random_.chance(faults_.slow)) return milliseconds(random_.below(4000));
  return microseconds(200 + random_.below(10000));
}

void Wire::silence_watches(Duration length) {
  silent_until_ = clock_.instant() + length;
  for (const auto& stream : streams_) stream->fall_silent();
}

size_t Wire::watches() const {
  return static_cast<size_t>(
      std::ranges::count_if(streams_, [](const auto& stream) { return stream->is_up_to_date(); }));
}

// What a server answers that has trouble of its own; the request has no effect.
std::optional<http::Response> Wire::refusal_of(const http::Request& request) {
  if (random_.chance(faults_.too_many)) {
    auto response = failure(429, "TooManyRequests", "slow down");
    response.headers.set("Retry-After", "1");
    return response;
  }
  if (request.method == "POST" && random_.chance(faults_.denied)) {
    return failure(403, "Forbidden", "admission webhook \"policy\" denied the request");
  }
  const auto target = http::parse_target(request.target);
  if (clock_.instant() < no_events_until_ && target.path.find("/events") != std::string::npos) {
    return failure(500, "InternalError", "no room for events");
  }
  if (request.method != "GET") return std::nullopt;
  const double expired = target.has("continue") ? faults_.page_expired : faults_.page_expired / 3;
  if (Server::is_list(target) && random_.chance(expired)) {
    return failure(410, "Expired", "the continue token has expired");
  }
  const auto version = target.get("resourceVersion");
  if (!version.empty() && version != "0" && random_.chance(faults_.behind)) {
    return failure(504, "Timeout", "Too large resource version", "", "ResourceVersionTooLarge");
  }
  return std::nullopt;
}

// From here on the request lives by itself.
void Wire::deliver(const http::Request& request, std::shared_ptr<Answer> answer) {
  clock_.after(request.timeout, [answer] { answer->give(lost(true, "timed out")); });
  if (random_.chance(faults_.hangs)) return;
  const bool lost_there = random_.chance(faults_.lost_there);
  const bool lost_back = random_.chance(faults_.lost_back);
  const bool fails = random_.chance(faults_.server_error);
  const bool fails_after = random_.chance(0.5);
  auto refusal = refusal_of(request);
  const Duration back = delay();
  clock_.after(delay(),
               [&server = server_, &clock = clock_, request, answer, who = who_, lost_there,
                lost_back, fails, fails_after, refusal = std::move(refusal), back]() mutable {
                 http::Response response;
                 if (lost_there) return answer->give(lost(true, "reset"));
                 if (refusal) {
                   response = std::move(*refusal);
                 } else {
                   if (!fails || fails_after) response = server.handle(request, who);
                   if (fails) response = failure(500, "InternalError", "the server failed");
                 }
                 clock.after(back, [answer, response = std::move(response), lost_back]() mutable {
                   if (lost_back) return answer->give(lost(true, "reset"));
                   answer->give(std::move(response));
                 });
               });
}

Task<Result<http::Response>> Wire::send(const http::Request& request) {
  if (random_.chance(faults_.never_leaves) || clock_.instant() < cut_off_until_) {
    co_return lost(false, "connection refused");
  }
  const auto answer = std::make_shared<Answer>(executor_, clock_);
  deliver(request, answer);
  co_await answer->wait();
  co_return std::move(*answer->result);
}

Task<Result<http::StreamResponse>> Wire::open(const http::Request& request) {
  if (Server::is_watch(http::parse_target(request.target))) {
    co_return co_await open_watch(request);
  }
  auto whole = co_await send(request);
  if (!whole) co_return fail(whole.error());
  http::StreamResponse response{.status = whole->status, .headers = whole->headers};
  const bool cut = random_.chance(faults_.stream_cut);
  if (cut) whole->body.resize(random_.below(whole->body.size()));
  response.body = std::make_unique<TextBody>(std::move(whole->body), cut);
  co_return response;
}

Task<Result<http::StreamResponse>> Wire::open_watch(http::Request request) {
  co_await clock_.sleep(delay());
  if (random_.chance(faults_.never_leaves + faults_.lost_there + faults_.lost_back) ||
      clock_.instant() < std::max(cut_off_until_, no_watches_until_)) {
    co_return lost(false, "connection refused");
  }
  std::erase_if(streams_, [](const auto& stream) { return stream->closed(); });
  auto stream = std::make_shared<Stream>(executor_, clock_, random_, faults_);
  auto answer = server_.watch(
      request, [to = stream.get()](std::string piece) { to->schedule(std::move(piece)); });
  http::StreamResponse response{.status = 200, .headers = std::move(answer.headers)};
  if (answer.refused) {
    const bool as_event = answer.refused->status == 410 && !answers_protobuf(request) &&
                          !random_.chance(faults_.expired_as_http);
    if (!as_event) response.status = answer.refused->status;
    response.body = std::make_unique<TextBody>(
        as_event ? "{\"type\":\"ERROR\",\"object\":" + answer.refused->body + "}\n"
                 : answer.refused->body,
        false);
    co_return response;
  }
  const auto target = http::parse_target(request.target);
  const auto timeout = kube::parse_resource_version(target.get("timeoutSeconds"));
  stream->begin(std::move(answer.watch), seconds(static_cast<int64_t>(timeout)));
  streams_.push_back(stream);
  if (clock_.instant() < silent_until_) stream->fall_silent();
  response.body = std::make_unique<WatchBody>(std::move(stream), request.idle_timeout);
  co_return response;
}

}  // namespace grapnel::simulation
