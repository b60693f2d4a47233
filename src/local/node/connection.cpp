#include "local/node/connection.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <cerrno>
#include <cstring>

namespace grapnel::local {
namespace asio = boost::asio;

struct Connection::Impl {
  Impl(const Executor& executor, int fd) : socket(executor, fd) {}
  asio::posix::stream_descriptor socket;
};

Connection::Connection(std::shared_ptr<Impl> impl) : impl_(std::move(impl)) {}
Connection::~Connection() = default;

Result<std::unique_ptr<Connection>> Connection::open(Executor executor,
                                                     const std::string& directory) {
  const Fd folder(::open(directory.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!folder) return fail(Reason::kNotFound, "{}: {}", directory, strerror(errno));
  Fd socket(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  // The name of a socket is at most 108 bytes: go through the open directory.
  const std::string path = fmt::format("/proc/self/fd/{}/{}", folder.get(), shim::kSocketName);
  std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
  if (!socket ||
      connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    return fail(Reason::kTransport, "connecting to the shim in {}: {}", directory, strerror(errno));
  }
  return std::unique_ptr<Connection>(
      new Connection(std::make_shared<Impl>(executor, socket.release())));
}

Result<> Connection::send(std::string_view bytes, const std::vector<int>& fds) {
  iovec part{.iov_base = const_cast<char*>(bytes.data()), .iov_len = bytes.size()};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int) * shim::kMostFds)] = {};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  if (!fds.empty()) {
    message.msg_control = control;
    message.msg_controllen = CMSG_SPACE(sizeof(int) * fds.size());
    cmsghdr* head = CMSG_FIRSTHDR(&message);
    head->cmsg_level = SOL_SOCKET;
    head->cmsg_type = SCM_RIGHTS;
    head->cmsg_len = CMSG_LEN(sizeof(int) * fds.size());
    std::memcpy(CMSG_DATA(head), fds.data(), sizeof(int) * fds.size());
  }
  ssize_t sent = 0;
  do {
    sent = sendmsg(impl_->socket.native_handle(), &message, MSG_NOSIGNAL | MSG_DONTWAIT);
  } while (sent < 0 && errno == EINTR);
  if (sent < 0) return fail(Reason::kTransport, "telling the shim: {}", strerror(errno));
  return {};
}

Task<std::optional<Connection::Packet>> Connection::receive() {
  const auto impl = impl_;
  static char bytes[shim::kLargestMessage];  // nothing waits between filling and copying it
  while (true) {
    iovec part{.iov_base = bytes, .iov_len = sizeof bytes};
    alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int) * shim::kMostFds)];
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    message.msg_control = control;
    message.msg_controllen = sizeof control;
    const ssize_t got =
        recvmsg(impl->socket.native_handle(), &message, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && errno == EAGAIN) {
      const auto [error] = co_await impl->socket.async_wait(
          asio::posix::stream_descriptor::wait_read, asio::as_tuple(asio::use_awaitable));
      if (error) throw boost::system::system_error(error);
      continue;
    }
    if (got <= 0) co_return std::nullopt;
    Packet packet;
    for (cmsghdr* head = CMSG_FIRSTHDR(&message); head != nullptr;
         head = CMSG_NXTHDR(&message, head)) {
      if (head->cmsg_level != SOL_SOCKET || head->cmsg_type != SCM_RIGHTS) continue;
      const size_t count = (head->cmsg_len - CMSG_LEN(0)) / sizeof(int);
      std::vector<int> fds(count);
      std::memcpy(fds.data(), CMSG_DATA(head), count * sizeof(int));
      for (const int fd : fds) packet.fds.emplace_back(fd);
    }
    packet.bytes.assign(bytes, static_cast<size_t>(got));
    co_return packet;
  }
}

}  // namespace grapnel::local
