#include "kube/status.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "base/strings.h"

namespace grapnel::kube {
namespace {

constexpr int64_t kLongestWait = 3600;  // a Retry-After beyond an hour is a mistake, not a plan

Reason reason_of_code(int code) {
  switch (code) {
    case 400:
      return Reason::kBadRequest;
    case 401:
      return Reason::kUnauthorized;
    case 403:
      return Reason::kForbidden;
    case 404:
      return Reason::kNotFound;
    case 405:
      return Reason::kMethodNotAllowed;
    case 406:
      return Reason::kNotAcceptable;
    case 408:
      return Reason::kTimeout;
    case 409:
      return Reason::kConflict;
    case 410:
      return Reason::kGone;
    case 413:
      return Reason::kRequestEntityTooLarge;
    case 415:
      return Reason::kUnsupportedMediaType;
    case 422:
      return Reason::kInvalid;
    case 429:
      return Reason::kTooManyRequests;
    case 502:
    case 503:
      return Reason::kServiceUnavailable;
    case 504:
      return Reason::kTimeout;
    default:
      return code >= 500 ? Reason::kInternalError : Reason::kUnknown;
  }
}

std::string text_at(const Json& object, std::string_view key) {
  return std::string(string_or(find(object, key)));
}

std::vector<Cause> causes_of(const Json& status) {
  std::vector<Cause> causes;
  const Json* list = at(status, "details", "causes");
  if (list == nullptr || !list->is_array()) return causes;
  for (const Json& cause : list->get_array()) {
    if (!cause.is_object()) continue;
    causes.push_back({.field = text_at(cause, "field"),
                      .message = text_at(cause, "message"),
                      .reason = text_at(cause, "reason")});
  }
  return causes;
}

std::optional<Duration> wait_of_seconds(int64_t count) {
  if (count <= 0) return std::nullopt;
  return seconds(std::min(count, kLongestWait));
}

// Only the form in seconds: the other one, a date, is of no use between clocks that differ.
std::optional<Duration> wait_of_header(std::string_view text) {
  text = trim(text);
  int64_t count = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), count);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return wait_of_seconds(count);
}

bool is_status(const Json& body) {
  return string_or(find(body, "kind")) == "Status";
}

// The beginning of a body that is no Status, fit for one line of a message.
std::string excerpt(std::string_view body) {
  constexpr size_t kLength = 200;
  std::string text;
  for (const char c : trim(body.substr(0, kLength * 4))) {
    const bool space = static_cast<unsigned char>(c) <= ' ' || c == 0x7f;
    if (space && (text.empty() || text.back() == ' ')) continue;
    text += space ? ' ' : c;
    if (text.size() < kLength) continue;
    // Not in the middle of a UTF-8 sequence.
    while (!text.empty() && (static_cast<unsigned char>(text.back()) & 0xc0) == 0x80) {
      text.pop_back();
    }
    if (!text.empty() && static_cast<unsigned char>(text.back()) >= 0xc0) text.pop_back();
    return text + "…";
  }
  return text;
}

Error error_without_status(const http::Response& answer, std::string_view asked) {
  Error error{.reason = reason_of_code(answer.status), .code = answer.status};
  error.message = fmt::format("{}: the server answered {}", asked, answer.status);
  if (const auto location = answer.headers.get("Location"); !location.empty()) {
    error.message += fmt::format(" (to {})", location);
  }
  if (const auto text = excerpt(answer.body); !text.empty()) {
    error.message += fmt::format(", not as Kubernetes does: {}", text);
  }
  return error;
}

}  // namespace

Error error_of_status(int code, const Json& status) {
  Error error{.code = code};
  if (code == 0) {
    error.code = static_cast<int>(std::clamp<int64_t>(int_or(find(status, "code")), 0, 999));
  }
  error.reason = reason_from_string(string_or(find(status, "reason")));
  // The names after kUnknown are ours: a server cannot speak them.
  if (error.reason >= Reason::kUnknown) error.reason = reason_of_code(error.code);
  error.message = text_at(status, "message");
  if (error.message.empty()) {
    error.message = fmt::format("the server answered {} {}", error.code, to_string(error.reason));
  }
  error.causes = causes_of(status);
  error.retry_after = wait_of_seconds(int_or(at(status, "details", "retryAfterSeconds")));
  return error;
}

Error error_of_answer(const http::Response& answer, std::string_view asked) {
  const auto body = parse_json(answer.body);
  Error error = body && is_status(*body) ? error_of_status(answer.status, *body)
                                         : error_without_status(answer, asked);
  if (const auto wait = wait_of_header(answer.headers.get("Retry-After"))) {
    error.retry_after = wait;
  }
  return error;
}

}  // namespace grapnel::kube
