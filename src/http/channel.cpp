#include "http/channel.h"

#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/system/system_error.hpp>
#include <cerrno>
#include <cstring>

namespace grapnel::http {
namespace asio = boost::asio;
namespace {

using Base = asio::posix::descriptor_base;

Instant now() {
  return std::chrono::time_point_cast<Duration>(std::chrono::steady_clock::now());
}

ErrorCode last_error() {
  return {errno, boost::system::system_category()};
}

bool would_block() {
  return errno == EAGAIN || errno == EWOULDBLOCK;
}

Task<> throw_if_cancelled() {
  const auto state = co_await asio::this_coro::cancellation_state;
  if (state.cancelled() != asio::cancellation_type::none) {
    throw boost::system::system_error(asio::error::operation_aborted);
  }
}

}  // namespace

Channel::Channel(const Executor& executor, int fd)
    : executor_(executor), descriptor_(executor), timer_(executor) {
  ErrorCode ignored;
  descriptor_.assign(fd, ignored);
}

Channel::~Channel() = default;

void Channel::close() {
  ErrorCode ignored;
  if (descriptor_.is_open()) descriptor_.close(ignored);
}

Task<ErrorCode> Channel::wait(Want want) {
  streak_ = 0;
  if (expired_) co_return asio::error::timed_out;
  const auto [error] =
      co_await descriptor_.async_wait(want == Want::kRead ? Base::wait_read : Base::wait_write,
                                      asio::as_tuple(asio::use_awaitable));
  co_await throw_if_cancelled();
  if (expired_) co_return asio::error::timed_out;
  co_return error;
}

// A peer that is always ready must not keep the loop to itself.
Task<> Channel::let_others_run() {
  streak_ = 0;
  co_await asio::post(executor_, asio::use_awaitable);
}

Task<Channel::Read> Channel::read(char* data, size_t size) {
  if (!unread_.empty()) {
    const size_t count = std::min(size, unread_.size());
    std::memcpy(data, unread_.data(), count);
    unread_.erase(0, count);
    co_return Read{.count = count};
  }
  if (++streak_ > 16) co_await let_others_run();
  while (true) {
    if (!is_open()) co_return Read{.error = asio::error::bad_descriptor};
    const Step step = try_read(data, size);
    if (step.want == Want::kNothing) co_return Read{step.error, step.count};
    if (const auto error = co_await wait(step.want)) co_return Read{error};
  }
}

Task<Channel::Read> Channel::append_to(std::string& buffer, size_t most) {
  if (!unread_.empty()) {
    const size_t count = std::min(most, unread_.size());
    buffer.append(unread_, 0, count);
    unread_.erase(0, count);
    co_return Read{.count = count};
  }
  if (++streak_ > 16) co_await let_others_run();
  thread_local std::array<char, 32768> shared;  // used between two waits only
  while (true) {
    if (!is_open()) co_return Read{.error = asio::error::bad_descriptor};
    const Step step = try_read(shared.data(), std::min(most, shared.size()));
    if (step.want == Want::kNothing) {
      buffer.append(shared.data(), step.count);
      co_return Read{step.error, step.count};
    }
    if (const auto error = co_await wait(step.want)) co_return Read{error};
  }
}

void Channel::unread(std::string bytes) {
  unread_.insert(0, bytes);
}

Task<ErrorCode> Channel::write(std::string_view data) {
  while (!data.empty()) {
    if (!is_open()) co_return asio::error::bad_descriptor;
    if (++streak_ > 16) co_await let_others_run();
    if (!is_open()) co_return asio::error::bad_descriptor;
    const Step step = try_write(data);
    if (step.error) co_return step.error;
    if (step.want != Want::kNothing) {
      if (const auto error = co_await wait(step.want)) co_return error;
    }
    data.remove_prefix(step.count);
  }
  co_return ErrorCode();
}

Task<ErrorCode> Channel::handshake() {
  while (true) {
    if (!is_open()) co_return asio::error::bad_descriptor;
    const Step step = try_handshake();
    if (step.want == Want::kNothing) co_return step.error;
    if (const auto error = co_await wait(step.want)) co_return error;
  }
}

Task<> Channel::finish_writing() {
  while (is_open()) {
    const Step step = try_goodbye();
    if (step.want == Want::kNothing) break;
    if (co_await wait(step.want)) co_return;
  }
  if (is_open()) ::shutdown(fd(), SHUT_WR);
}

Task<> Channel::wait_for_hangup() {
  if (!is_open()) co_return;
  co_await descriptor_.async_wait(Base::wait_error, asio::as_tuple(asio::use_awaitable));
  co_await throw_if_cancelled();
}

Channel::Step Channel::try_read(char* data, size_t size) {
  const ssize_t count = ::recv(fd(), data, size, 0);
  if (count >= 0) return {.count = static_cast<size_t>(count)};
  if (would_block()) return {.want = Want::kRead};
  return {.error = last_error()};
}

Channel::Step Channel::try_write(std::string_view data) {
  const ssize_t count = ::send(fd(), data.data(), data.size(), MSG_NOSIGNAL);
  if (count >= 0) return {.count = static_cast<size_t>(count)};
  if (would_block()) return {.want = Want::kWrite};
  return {.error = last_error()};
}

void Channel::set_deadline(Instant deadline) {
  deadline_ = deadline;
  expired_ = false;
  // A timer that fires early looks again; only one that would fire late must move.
  if (!armed_for_ || *armed_for_ > deadline) arm_timer();
}

void Channel::arm_timer() {
  armed_for_ = *deadline_;
  timer_.expires_at(*deadline_);
  timer_.async_wait([weak = weak_from_this()](const ErrorCode& error) {
    const auto self = weak.lock();
    if (error || !self) return;
    self->armed_for_.reset();
    if (!self->deadline_) return;
    if (now() < *self->deadline_) return self->arm_timer();
    self->expired_ = true;
    ErrorCode ignored;
    if (self->descriptor_.is_open()) self->descriptor_.cancel(ignored);
  });
}

}  // namespace grapnel::http
