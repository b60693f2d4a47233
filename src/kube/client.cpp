#include "kube/client.h"

#include <fmt/format.h>

#include <algorithm>

#include "kube/types/protobuf.h"
#include "kube/watch_as_json.h"

namespace grapnel::kube {
namespace {

constexpr size_t kMaxErrorBody = 1UL << 20;

using Stream = std::unique_ptr<http::BodyStream>;

bool is_protobuf(const http::Headers& headers) {
  return headers.get("Content-Type").starts_with(kProtobuf);
}

// A body that cannot be read stays as it is: who parses it says what is wrong.
void write_as_json(http::Response& answer) {
  if (!is_protobuf(answer.headers)) return;
  if (auto text = json_of_protobuf(answer.body, {.managed_fields = false})) {
    answer.body = std::move(*text);
  }
}

bool is_write(const http::Request& request) {
  return request.method != "GET";
}

bool is_success(int code) {
  return code >= 200 && code < 300;
}

Task<> collect(http::BodyStream& body, std::string& text) {
  while (text.size() < kMaxErrorBody) {
    auto piece = co_await body.read();
    if (!piece || piece->empty()) co_return;
    text += *piece;
  }
}

bool refuses_us(const http::Response& answer) {
  return answer.status == 401;
}

bool refuses_us_on_stream(const http::StreamResponse& answer) {
  return answer.status == 401;
}

// Behind a proxy path the 401 may be that of a program of the user's, whose password is not ours to
// renew: only a Status is the API server's own.
bool server_itself_refuses_us(const http::Response& answer) {
  if (answer.status != 401) return false;
  const auto body = parse_json(answer.body);
  return body && string_or(find(*body, "kind")) == "Status";
}

}  // namespace

Client::Client(std::shared_ptr<http::Transport> transport, std::shared_ptr<Credentials> credentials,
               ClientOptions options)
    : transport_(std::move(transport)),
      credentials_(std::move(credentials)),
      options_(std::move(options)) {
  while (options_.server.ends_with('/')) options_.server.pop_back();
}

http::Request Client::request(std::string_view method, std::string_view path,
                              const Query& query) const {
  return {.method = std::string(method),
          .target = fmt::format("{}{}{}", options_.server, path, query.text()),
          .headers = {{"Accept", "application/json"}},
          .timeout = options_.timeout};
}

// What an error says was asked for: never the query, it may be long.
std::string Client::describe(const http::Request& request) const {
  std::string_view path = request.target;
  path.remove_prefix(std::min(path.size(), options_.server.size()));
  return fmt::format("{} {}", request.method, path.substr(0, path.find('?')));
}

Task<Result<>> Client::authorize(http::Request& request) {
  request.headers.set("User-Agent", options_.user_agent);
  if (!credentials_) co_return Result<>();
  auto done = co_await credentials_->authorize(request);
  if (!done) done.error().ambiguous = false;  // our request has not left
  co_return done;
}

template <class Answer>
Task<Result<Answer>> Client::exchange(http::Request& request, Send<Answer> send,
                                      bool (*unauthorized)(const Answer&)) {
  const size_t plain = request.headers.size();
  for (bool retried = false;; retried = true) {
    request.headers.keep_first(plain);
    if (auto done = co_await authorize(request); !done) co_return fail(std::move(done.error()));

    const Instant start = options_.clock->instant();
    auto answer = co_await ((*transport_).*send)(request);
    if (options_.observe) {
      options_.observe(request.method, answer ? answer->status : 0,
                       options_.clock->instant() - start);
    }
    if (!answer) {
      if (!is_write(request)) answer.error().ambiguous = false;
      co_return fail(std::move(answer.error()));  // the transport has said what was asked
    }
    if (retried || !unauthorized(*answer) || !credentials_ ||
        !credentials_->renew(request.headers.get("Authorization"))) {
      co_return answer;
    }
  }
}

Task<Result<Json>> Client::send_json(http::Request request) {
  auto answer = co_await exchange(request, &http::Transport::send, &refuses_us);
  if (!answer) co_return fail(answer.error());
  write_as_json(*answer);
  co_return read_json(request, *answer);
}

// No part of send_json: what is needed here would take room there while hundreds wait.
Result<Json> Client::read_json(const http::Request& request, const http::Response& answer) const {
  const std::string asked = describe(request);
  if (!is_success(answer.status)) {
    Error error = error_of_answer(answer, asked);
    // A server that failed may have failed after the write, and a proxy knows nothing of it.
    error.ambiguous = is_write(request) && error.code >= 500;
    return fail(std::move(error));
  }
  auto body = parse_json(answer.body);
  if (body && body->is_object()) return body;
  return fail(Error{.reason = Reason::kDecode,
                    .message = fmt::format("{}: the answer is not a JSON object{}{}", asked,
                                           body ? "" : ": ", body ? "" : body.error().message),
                    .code = answer.status,
                    .ambiguous = is_write(request)});
}

Task<Result<Stream>> Client::open(http::Request request) {
  auto answer = co_await exchange(request, &http::Transport::open, &refuses_us_on_stream);
  if (!answer) co_return fail(std::move(answer.error()));
  if (is_success(answer->status)) {
    co_return is_protobuf(answer->headers) ? watch_as_json(std::move(answer->body))
                                           : std::move(answer->body);
  }

  http::Response whole{.status = answer->status, .headers = std::move(answer->headers)};
  Clock& clock = *options_.clock;
  if (answer->body) {
    co_await with_deadline(clock, clock.instant() + seconds(10),
                           collect(*answer->body, whole.body));
  }
  write_as_json(whole);
  co_return fail(error_of_answer(whole, describe(request)));
}

Task<Result<http::Response>> Client::raw(http::Request request) {
  if (!request.target.starts_with('/')) {
    co_return fail(Reason::kUsage, "'{}' is not a path below the server", request.target);
  }
  request.target.insert(0, options_.server);
  co_return co_await exchange(request, &http::Transport::send, &server_itself_refuses_us);
}

}  // namespace grapnel::kube
