#include "local/kubelet/service_proxy.h"

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
#include <set>

#include "base/log.h"
#include "local/kubelet/fd_stream.h"

namespace grapnel::local::kubelet {

namespace asio = boost::asio;

namespace {

using Place = std::pair<std::string, uint16_t>;  // address and port

struct Targets {
  std::vector<Target> all;
  size_t next = 0;
};

Result<> listen_at(int fd, const Place& place) {
  const auto number = parse_address(place.first);
  if (!number) return fail(Reason::kUsage, "'{}' is no IPv4 address", place.first);
  sockaddr_in where{};
  where.sin_family = AF_INET;
  where.sin_port = htons(place.second);
  where.sin_addr.s_addr = htonl(*number);
  const int on = 1;
  setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (bind(fd, reinterpret_cast<const sockaddr*>(&where), sizeof where) != 0 ||
      listen(fd, 128) != 0) {
    return fail(Reason::kSystem, "listening on {}:{}: {}", place.first, place.second,
                std::strerror(errno));
  }
  fcntl(fd, F_SETFL, O_NONBLOCK);
  return {};
}

// To a port of the host itself: the API server's.
Result<Fd> connect_to_host(uint16_t port) {
  Fd fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in where{};
  where.sin_family = AF_INET;
  where.sin_port = htons(port);
  where.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (!fd || connect(fd.get(), reinterpret_cast<const sockaddr*>(&where), sizeof where) != 0) {
    return fail(Reason::kTransport, "connecting to port {}: {}", port, std::strerror(errno));
  }
  return fd;
}

Task<> pass(std::shared_ptr<FdStream> from, std::shared_ptr<FdStream> to) {
  for (;;) {
    auto data = co_await from->read();
    if (!data || data->empty()) break;
    if (auto written = co_await to->write(*data); !written) break;
  }
  to->finish_writing();
}

}  // namespace

struct ServiceProxy::Impl : std::enable_shared_from_this<Impl> {
  struct Listener {
    std::shared_ptr<Targets> targets = std::make_shared<Targets>();
    Spawned accepting;
  };

  Impl(Executor given, PodRunner& r) : executor(given), runner(r) {}

  static Task<> accept(std::shared_ptr<Impl> self, Fd listening, std::shared_ptr<Targets> targets);
  static Task<> serve(std::shared_ptr<Impl> self, uint64_t id, Fd client,
                      std::shared_ptr<Targets> targets);
  static Task<> forward(std::shared_ptr<Impl> self, Fd client, std::shared_ptr<Targets> targets);
  Task<Result<>> open(Place place);
  void sweep();

  Executor executor;
  PodRunner& runner;
  std::map<Place, Listener> listeners;
  std::set<std::string> addresses;
  std::map<uint64_t, Spawned> connections;
  std::vector<uint64_t> ended;
  uint64_t next_id = 0;
};

Task<> ServiceProxy::Impl::accept(std::shared_ptr<Impl> self, Fd listening,
                                  std::shared_ptr<Targets> targets) {
  asio::posix::stream_descriptor socket(self->executor, listening.release());
  for (;;) {
    const auto [error] = co_await socket.async_wait(asio::posix::descriptor_base::wait_read,
                                                    asio::as_tuple(asio::use_awaitable));
    if (error) co_return;
    self->sweep();
    for (;;) {
      Fd client(accept4(socket.native_handle(), nullptr, nullptr, SOCK_CLOEXEC));
      if (!client) break;
      const uint64_t id = self->next_id++;
      self->connections[id] = spawn(self->executor, serve(self, id, std::move(client), targets));
    }
  }
}

Task<> ServiceProxy::Impl::serve(std::shared_ptr<Impl> self, uint64_t id, Fd client,
                                 std::shared_ptr<Targets> targets) {
  co_await forward(self, std::move(client), std::move(targets));
  self->ended.push_back(id);
}

Task<> ServiceProxy::Impl::forward(std::shared_ptr<Impl> self, Fd client,
                                   std::shared_ptr<Targets> targets) {
  // Pods come and go: one that refuses is passed over.
  for (size_t tries = targets->all.size(); tries > 0; --tries) {
    if (targets->all.empty()) co_return;
    const Target target = targets->all[targets->next++ % targets->all.size()];
    auto there = target.is_host ? connect_to_host(target.port)
                                : co_await self->runner.connect(target.address, target.port);
    if (!there) continue;
    const auto here = std::make_shared<FdStream>(self->executor, std::move(client));
    const auto far = std::make_shared<FdStream>(self->executor, std::move(*there));
    std::vector<Task<>> both;
    both.push_back(pass(here, far));
    both.push_back(pass(far, here));
    co_await all(std::move(both));
    co_return;
  }
}

void ServiceProxy::Impl::sweep() {
  for (const uint64_t id : std::exchange(ended, {})) connections.erase(id);
}

Task<Result<>> ServiceProxy::Impl::open(Place place) {
  ClusterNetwork* network = runner.network();
  if (!addresses.contains(place.first)) {
    if (auto added = co_await network->add_address(place.first); !added) co_return added;
    addresses.insert(place.first);
  }
  auto fd = co_await network->socket(AF_INET, SOCK_STREAM);
  if (!fd) co_return fail(fd.error());
  if (auto listening = listen_at(fd->get(), place); !listening) co_return listening;
  Listener& listener = listeners[place];
  listener.accepting =
      spawn(executor, accept(shared_from_this(), std::move(*fd), listener.targets));
  co_return Result<>();
}

ServiceProxy::ServiceProxy(Executor executor, PodRunner& runner)
    : impl_(std::make_shared<Impl>(executor, runner)) {}
ServiceProxy::~ServiceProxy() = default;

Task<> ServiceProxy::set(std::vector<Route> routes) {
  const auto impl = impl_;
  if (impl->runner.network() == nullptr) co_return;
  std::set<Place> wanted;
  std::set<std::string> addresses;
  for (Route& route : routes) {
    const Place place(route.address, route.port);
    wanted.insert(place);
    addresses.insert(route.address);
    if (!impl->listeners.contains(place)) {
      if (auto opened = co_await impl->open(place); !opened) {
        log_warning("a service's address does not work",
                    {{"address", route.address}, {"why", opened.error().message}});
        continue;
      }
    }
    impl->listeners[place].targets->all = std::move(route.targets);
  }
  std::erase_if(impl->listeners, [&](const auto& entry) { return !wanted.contains(entry.first); });
  for (const std::string& address : std::set(impl->addresses)) {
    if (addresses.contains(address)) continue;
    impl->addresses.erase(address);
    auto removed = co_await impl->runner.network()->remove_address(address);
    if (!removed) log_debug("an address stays", {{"why", removed.error().message}});
  }
}

Task<> ServiceProxy::stop() {
  const auto impl = impl_;
  for (auto& [place, listener] : impl->listeners) {
    listener.accepting.cancel();
    co_await listener.accepting.join();
  }
  impl->listeners.clear();
  for (auto& [id, connection] : impl->connections) connection.cancel();
  for (auto& [id, connection] : impl->connections) co_await connection.join();
  impl->connections.clear();
  impl->ended.clear();
}

}  // namespace grapnel::local::kubelet
