#include "http/exchange.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/system/system_error.hpp>

namespace grapnel::http {
namespace {

bool is_token(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, [](char c) {
    return c > ' ' && c < '\x7f' &&
           std::string_view("()<>@,;:\\\"/[]?={}").find(c) == std::string_view::npos;
  });
}

}  // namespace

bool is_safe(std::string_view method) {
  return method == "GET" || method == "HEAD" || method == "OPTIONS";
}

bool is_one_line(std::string_view text) {
  return text.find_first_of(std::string_view("\r\n\0", 3)) == std::string_view::npos;
}

bool is_field(std::string_view name, std::string_view value) {
  return is_token(name) && is_one_line(value);
}

bool is_sendable(const Request& request) {
  return is_token(request.method) && is_one_line(request.target) &&
         std::ranges::all_of(request.headers,
                             [](const auto& field) { return is_field(field.first, field.second); });
}

std::pair<std::string_view, std::string> split_url(std::string_view url) {
  const size_t begin = url.find("://");
  const size_t end =
      begin == std::string_view::npos ? url.size() : url.find_first_of("/?#", begin + 3);
  const std::string_view origin = url.substr(0, end);
  std::string path(url.substr(origin.size()));
  path.erase(std::min(path.find('#'), path.size()));
  if (!path.starts_with('/')) path.insert(0, "/");
  return {origin, path};
}

Error failure_of(const Request& request, Reason reason, std::string_view what,
                 bool may_have_been_sent) {
  const std::string_view target = request.target;
  return Error{
      .reason = reason,
      .message = fmt::format("{} {}: {}", request.method, target.substr(0, target.find('?')), what),
      .ambiguous = may_have_been_sent && !is_safe(request.method)};
}

Instant deadline_of(const Request& request) {
  return system_clock().instant() +
         std::clamp<Duration>(request.timeout, Duration::zero(), hours(24 * 365));
}

Error late(const Request& request, bool may_have_been_sent) {
  return failure_of(request, Reason::kTransport,
                    fmt::format("no answer within {}", in_seconds(request.timeout)),
                    may_have_been_sent);
}

std::string in_seconds(Duration length) {
  return fmt::format("{:g} s", static_cast<double>(length.count()) / 1e6);
}

Task<> wait_until(boost::asio::steady_timer& timer, std::optional<Instant> deadline) {
  namespace asio = boost::asio;
  timer.expires_at(deadline ? asio::steady_timer::time_point(*deadline)
                            : asio::steady_timer::time_point::max());
  co_await timer.async_wait(asio::as_tuple(asio::use_awaitable));
  const auto state = co_await asio::this_coro::cancellation_state;
  if (state.cancelled() != asio::cancellation_type::none) {
    throw boost::system::system_error(asio::error::operation_aborted);
  }
}

}  // namespace grapnel::http
