#include "local/kubelet/relay.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <cerrno>
#include <cstring>
#include <map>
#include <utility>
#include <vector>

#include "local/kubelet/fd_stream.h"
#include "local/node/network.h"

namespace grapnel::local::kubelet {

namespace asio = boost::asio;

namespace {

using Descriptor = asio::posix::stream_descriptor;

Task<> pass(std::shared_ptr<FdStream> from, std::shared_ptr<FdStream> to) {
  for (;;) {
    auto data = co_await from->read();
    if (!data || data->empty()) break;
    if (auto written = co_await to->write(*data); !written) break;
  }
  to->finish_writing();
}

}  // namespace

struct Relay::Impl {
  Impl(Executor given, std::shared_ptr<Connector> c) : executor(given), connector(std::move(c)) {}

  static Task<> accept(std::shared_ptr<Impl> self, Fd listening);
  static Task<> serve(std::shared_ptr<Impl> self, uint64_t id, Fd client);
  static Task<> join_ends(Executor executor, std::shared_ptr<Connector> connector, Fd client);
  void sweep() {
    for (const uint64_t id : std::exchange(ended, {})) connections.erase(id);
  }

  Executor executor;
  std::shared_ptr<Connector> connector;
  Spawned accepting;
  std::map<uint64_t, Spawned> connections;
  std::vector<uint64_t> ended;
  uint64_t next_id = 0;
};

Task<> Relay::Impl::accept(std::shared_ptr<Impl> self, Fd listening) {
  Descriptor socket(self->executor, listening.release());
  for (;;) {
    const auto [error] =
        co_await socket.async_wait(Descriptor::wait_read, asio::as_tuple(asio::use_awaitable));
    if (error) co_return;
    self->sweep();
    for (;;) {
      Fd client(accept4(socket.native_handle(), nullptr, nullptr, SOCK_CLOEXEC));
      if (!client) break;
      const uint64_t id = self->next_id++;
      self->connections[id] = spawn(self->executor, serve(self, id, std::move(client)));
    }
  }
}

Task<> Relay::Impl::serve(std::shared_ptr<Impl> self, uint64_t id, Fd client) {
  co_await join_ends(self->executor, self->connector, std::move(client));
  self->ended.push_back(id);
}

Task<> Relay::Impl::join_ends(Executor executor, std::shared_ptr<Connector> connector, Fd client) {
  auto there = co_await connector->connect(client.get());
  if (!there) co_return;
  const auto here = std::make_shared<FdStream>(executor, std::move(client));
  const auto far = std::make_shared<FdStream>(executor, std::move(*there));
  std::vector<Task<>> both;
  both.push_back(pass(here, far));
  both.push_back(pass(far, here));
  co_await all(std::move(both));
}

Relay::Relay(Executor executor, Fd listening, std::shared_ptr<Connector> connector)
    : impl_(std::make_shared<Impl>(executor, std::move(connector))) {
  impl_->accepting = spawn(executor, Impl::accept(impl_, std::move(listening)));
}
Relay::Relay(Relay&&) noexcept = default;
Relay& Relay::operator=(Relay&&) noexcept = default;

Relay::~Relay() {
  if (!impl_) return;
  impl_->accepting.cancel();
  for (auto& [id, connection] : impl_->connections) connection.detach();
  impl_->connections.clear();
}

Task<> Relay::stop() {
  const auto impl = impl_;
  impl->accepting.cancel();
  co_await impl->accepting.join();
  for (auto& [id, connection] : impl->connections) connection.cancel();
  for (auto& [id, connection] : impl->connections) co_await connection.join();
  impl->connections.clear();
  impl->ended.clear();
}

Result<> listen_at(int socket, const std::string& address, uint16_t port) {
  const auto number =
      address.empty() ? std::optional<uint32_t>(INADDR_ANY) : parse_address(address);
  if (!number) return fail(Reason::kUsage, "'{}' is no IPv4 address", address);
  const sockaddr_in where = socket_address(*number, port);
  const int on = 1;
  setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (bind(socket, generic(where), sizeof where) != 0 || listen(socket, 512) != 0) {
    return fail(Reason::kSystem, "listening on {}:{}: {}", address, port, std::strerror(errno));
  }
  fcntl(socket, F_SETFL, O_NONBLOCK);
  return {};
}

Task<Result<Fd>> connect_from_host(Executor executor, uint32_t address, uint16_t port) {
  Fd fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  const sockaddr_in where = socket_address(address, port);
  int error = 0;
  if (!fd || connect(fd.get(), generic(where), sizeof where) != 0) {
    error = errno;
  }
  if (error == EINPROGRESS) {
    Descriptor waiting(executor, dup(fd.get()));
    const auto [waited] =
        co_await waiting.async_wait(Descriptor::wait_write, asio::as_tuple(asio::use_awaitable));
    if (waited) throw boost::system::system_error(waited);
    socklen_t size = sizeof error;
    getsockopt(fd.get(), SOL_SOCKET, SO_ERROR, &error, &size);
  }
  if (error != 0) {
    co_return fail(Reason::kTransport, "connecting to {}:{}: {}", format_address(address), port,
                   std::strerror(error));
  }
  co_return fd;
}

}  // namespace grapnel::local::kubelet
