#include "cli/terminal.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>

namespace grapnel::cli {

namespace asio = boost::asio;

std::optional<TerminalSize> terminal_size(int fd) {
  winsize size{};
  if (::ioctl(fd, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return std::nullopt;
  return TerminalSize{.width = size.ws_col, .height = size.ws_row};
}

bool takes_colours(int fd) {
  const char* plain = std::getenv("NO_COLOR");
  const char* terminal = std::getenv("TERM");
  const bool dumb = terminal != nullptr && std::string_view(terminal) == "dumb";
  return ::isatty(fd) == 1 && !dumb && (plain == nullptr || *plain == '\0');
}

struct RawTerminal::Saved {
  termios settings{};
};

RawTerminal::RawTerminal() : saved_(std::make_unique<Saved>()) {
  if (::tcgetattr(STDIN_FILENO, &saved_->settings) != 0) {
    saved_.reset();
    return;
  }
  termios raw = saved_->settings;
  ::cfmakeraw(&raw);
  ::tcsetattr(STDIN_FILENO, TCSANOW, &raw);
}

RawTerminal::~RawTerminal() {
  if (saved_) ::tcsetattr(STDIN_FILENO, TCSADRAIN, &saved_->settings);
}

// Opened anew where that can be: a file description of our own may be made non-blocking, the one we
// were given belongs to the shell that started us, too.
struct StandardInput::Impl {
  explicit Impl(const Executor& executor) : descriptor(executor) {
    int fd = ::open("/proc/self/fd/0", O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY);
    if (fd < 0) {  // a socket
      before = ::fcntl(STDIN_FILENO, F_GETFL);
      fd = ::fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3);
      ::fcntl(fd, F_SETFL, before | O_NONBLOCK);
    }
    boost::system::error_code ignored;
    descriptor.assign(fd, ignored);
  }
  ~Impl() {
    if (before >= 0) ::fcntl(STDIN_FILENO, F_SETFL, before);
  }
  asio::posix::stream_descriptor descriptor;
  int before = -1;  // flags to be restored; -1: none
};

StandardInput::StandardInput(Executor executor) : impl_(std::make_unique<Impl>(executor)) {}
StandardInput::~StandardInput() = default;

Task<Result<std::string>> StandardInput::read() {
  std::string piece(32UL << 10, '\0');
  for (;;) {
    const ssize_t count = ::read(impl_->descriptor.native_handle(), piece.data(), piece.size());
    if (count >= 0) {
      piece.resize(static_cast<size_t>(count));
      co_return piece;
    }
    if (errno == EAGAIN) {
      const auto [error] = co_await impl_->descriptor.async_wait(
          asio::posix::descriptor_base::wait_read, asio::as_tuple(asio::use_awaitable));
      if (error) co_return fail(Reason::kCancelled, "standard input: {}", error.message());
    } else if (errno != EINTR) {
      co_return fail(Reason::kSystem, "cannot read standard input: {}", std::strerror(errno));
    }
  }
}

struct Resizes::Impl {
  explicit Impl(const Executor& executor) : signals(executor, SIGWINCH) {}
  asio::signal_set signals;
};

Resizes::Resizes(Executor executor) : impl_(std::make_unique<Impl>(executor)) {}
Resizes::~Resizes() = default;

Task<> Resizes::next() {
  co_await impl_->signals.async_wait(asio::use_awaitable);
}

Result<> write_all(int fd, std::string_view data) {
  while (!data.empty()) {
    const ssize_t count = ::write(fd, data.data(), data.size());
    if (count >= 0) {
      data.remove_prefix(static_cast<size_t>(count));
    } else if (errno == EAGAIN) {  // somebody else made it non-blocking
      pollfd wait{.fd = fd, .events = POLLOUT, .revents = 0};
      ::poll(&wait, 1, -1);
    } else if (errno != EINTR) {
      return fail(Reason::kSystem, "cannot write: {}", std::strerror(errno));
    }
  }
  return {};
}

}  // namespace grapnel::cli
