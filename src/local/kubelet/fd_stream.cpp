#include "local/kubelet/fd_stream.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <cerrno>
#include <csignal>
#include <cstring>

namespace grapnel::local::kubelet {

namespace asio = boost::asio;

namespace {

// The reader of a pipe may end before us, and SIGPIPE must not end us. So the signal is blocked,
// and a pending one is removed before it is unblocked.
ssize_t write_to_pipe(int fd, std::string_view data) {
  sigset_t pipe_only;
  sigset_t before;
  sigemptyset(&pipe_only);
  sigaddset(&pipe_only, SIGPIPE);
  pthread_sigmask(SIG_BLOCK, &pipe_only, &before);
  const ssize_t count = ::write(fd, data.data(), data.size());
  const int error = errno;
  if (count < 0 && error == EPIPE && sigismember(&before, SIGPIPE) == 0) {
    const timespec at_once{};
    sigtimedwait(&pipe_only, nullptr, &at_once);
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  errno = error;
  return count;
}

}  // namespace

struct FdStream::Impl {
  Impl(Executor executor, Fd fd) : descriptor(executor, fd.release()) {
    fcntl(descriptor.native_handle(), F_SETFL, O_NONBLOCK);
  }
  // Closed while we waited: the wait ends with an error, and its details do not matter.
  Task<bool> wait(asio::posix::descriptor_base::wait_type what) {
    const auto [error] = co_await descriptor.async_wait(what, asio::as_tuple(asio::use_awaitable));
    co_return !error && descriptor.is_open();
  }
  ssize_t write_some(std::string_view data) {
    const int fd = descriptor.native_handle();
    const ssize_t count = send(fd, data.data(), data.size(), MSG_NOSIGNAL);
    return count < 0 && errno == ENOTSOCK ? write_to_pipe(fd, data) : count;
  }
  static Task<Result<std::string>> read(std::shared_ptr<Impl> self);
  static Task<Result<>> write(std::shared_ptr<Impl> self, std::string_view data);
  asio::posix::stream_descriptor descriptor;
};

Task<Result<std::string>> FdStream::Impl::read(std::shared_ptr<Impl> self) {
  std::string out(32UL << 10, '\0');
  for (;;) {
    if (!self->descriptor.is_open()) co_return std::string();
    const ssize_t count = ::read(self->descriptor.native_handle(), out.data(), out.size());
    if (count >= 0) {
      out.resize(static_cast<size_t>(count));
      co_return out;
    }
    if (errno == EINTR) continue;
    if (errno == EIO) co_return std::string();  // a terminal whose last user has gone
    if (errno != EAGAIN) co_return fail(Reason::kTransport, "{}", std::strerror(errno));
    if (!co_await self->wait(asio::posix::descriptor_base::wait_read)) co_return std::string();
  }
}

Task<Result<>> FdStream::Impl::write(std::shared_ptr<Impl> self, std::string_view data) {
  while (!data.empty()) {
    if (!self->descriptor.is_open()) co_return fail(Reason::kTransport, "it is closed");
    const ssize_t count = self->write_some(data);
    if (count >= 0) {
      data.remove_prefix(static_cast<size_t>(count));
      continue;
    }
    if (errno == EINTR) continue;
    if (errno != EAGAIN) co_return fail(Reason::kTransport, "{}", std::strerror(errno));
    if (!co_await self->wait(asio::posix::descriptor_base::wait_write)) {
      co_return fail(Reason::kTransport, "it is closed");
    }
  }
  co_return Result<>();
}

FdStream::FdStream(Executor executor, Fd fd)
    : impl_(std::make_shared<Impl>(executor, std::move(fd))) {}

FdStream::~FdStream() {
  boost::system::error_code ignored;
  impl_->descriptor.close(ignored);
}

Task<Result<std::string>> FdStream::read() {
  return Impl::read(impl_);
}

Task<Result<>> FdStream::write(std::string_view data) {
  return Impl::write(impl_, data);
}

Task<> FdStream::close() {
  boost::system::error_code ignored;
  impl_->descriptor.close(ignored);
  co_return;
}

void FdStream::finish_writing() {
  if (impl_->descriptor.is_open()) shutdown(impl_->descriptor.native_handle(), SHUT_WR);
}

int FdStream::fd() const {
  return impl_->descriptor.native_handle();
}

}  // namespace grapnel::local::kubelet
