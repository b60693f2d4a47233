#include "local/kubelet/service_proxy.h"

#include <arpa/inet.h>
#include <sys/socket.h>

#include <cerrno>
#include <compare>
#include <cstring>
#include <map>
#include <set>
#include <variant>

#include "base/log.h"
#include "local/kubelet/datagram_relay.h"
#include "local/kubelet/relay.h"

namespace grapnel::local::kubelet {
namespace {

struct Place {
  std::string address;
  uint16_t port = 0;
  bool is_udp = false;
  auto operator<=>(const Place&) const = default;
};

// Those who serve now, each in turn.
struct Targets {
  const Target& take_turn() { return all[next++ % all.size()]; }
  std::vector<Target> all;
  size_t next = 0;
};

struct ToOneOf final : Connector, Targets {
  ToOneOf(Executor e, PodRunner& r) : executor(e), runner(r) {}

  Task<Result<Fd>> connect(int) override {
    // Pods come and go: skip one that refuses.
    for (size_t tries = all.size(); tries > 0 && !all.empty(); --tries) {
      const Target target = take_turn();
      auto there = target.is_host
                       ? co_await connect_from_host(executor, INADDR_LOOPBACK, target.port)
                       : co_await runner.connect(target.address, target.port);
      if (there) co_return there;
    }
    co_return fail(Reason::kTransport, "no ready pod is behind this service");
  }

  Executor executor;
  PodRunner& runner;
};

struct DatagramsToOneOf final : DatagramConnector, Targets {
  explicit DatagramsToOneOf(ClusterNetwork& n) : network(n) {}

  Task<Result<Fd>> connect(const sockaddr_in&) override {
    if (all.empty()) co_return fail(Reason::kTransport, "no ready pod is behind this service");
    const Target target = take_turn();
    const auto address = parse_address(target.address);
    if (!address) co_return fail(Reason::kUsage, "'{}' is no IPv4 address", target.address);
    auto fd = co_await network.socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK);
    if (!fd) co_return fd;
    const sockaddr_in where = socket_address(*address, target.port);
    if (::connect(fd->get(), generic(where), sizeof where) != 0) {
      co_return fail(Reason::kTransport, "UDP to {}: {}", target.address, std::strerror(errno));
    }
    co_return fd;
  }

  ClusterNetwork& network;
};

}  // namespace

struct ServiceProxy::Impl {
  struct Listener {
    std::shared_ptr<Targets> targets;
    std::variant<Relay, DatagramRelay> relay;
  };

  Impl(Executor given, Clock& c, PodRunner& r) : executor(given), clock(c), runner(r) {}
  Task<Result<>> open(Place place);
  Task<Result<Listener>> listen(const Place& place);
  Task<Result<Listener>> listen_for_datagrams(const Place& place);

  Executor executor;
  Clock& clock;
  PodRunner& runner;
  std::map<Place, Listener> listeners;
  std::set<std::string> addresses;
};

Task<Result<>> ServiceProxy::Impl::open(Place place) {
  if (!addresses.contains(place.address)) {
    auto added = co_await runner.network()->add_address(place.address);
    if (!added) co_return added;
    addresses.insert(place.address);
  }
  auto listener = place.is_udp ? co_await listen_for_datagrams(place) : co_await listen(place);
  if (!listener) co_return fail(listener.error());
  listeners.emplace(place, std::move(*listener));
  co_return Result<>();
}

Task<Result<ServiceProxy::Impl::Listener>> ServiceProxy::Impl::listen(const Place& place) {
  auto fd = co_await runner.network()->socket(AF_INET, SOCK_STREAM);
  if (!fd) co_return fail(fd.error());
  if (auto listening = listen_at(fd->get(), place.address, place.port); !listening) {
    co_return fail(listening.error());
  }
  const auto targets = std::make_shared<ToOneOf>(executor, runner);
  co_return Listener{.targets = targets, .relay = Relay(executor, std::move(*fd), targets)};
}

Task<Result<ServiceProxy::Impl::Listener>> ServiceProxy::Impl::listen_for_datagrams(
    const Place& place) {
  ClusterNetwork& network = *runner.network();
  const auto targets = std::make_shared<DatagramsToOneOf>(network);
  auto relay = co_await DatagramRelay::open(
      {.executor = executor, .clock = clock, .network = network, .connector = targets},
      place.address, place.port);
  if (!relay) co_return fail(relay.error());
  co_return Listener{.targets = targets, .relay = std::move(*relay)};
}

ServiceProxy::ServiceProxy(Executor executor, Clock& clock, PodRunner& runner)
    : impl_(std::make_shared<Impl>(executor, clock, runner)) {}
ServiceProxy::~ServiceProxy() = default;

Task<> ServiceProxy::set(std::vector<Route> routes) {
  const auto impl = impl_;
  if (impl->runner.network() == nullptr) co_return;
  std::set<Place> wanted;
  std::set<std::string> addresses;
  for (Route& route : routes) {
    const Place place{.address = route.address, .port = route.port, .is_udp = route.is_udp};
    wanted.insert(place);
    addresses.insert(route.address);
    if (!impl->listeners.contains(place)) {
      if (auto opened = co_await impl->open(place); !opened) {
        log_warning("a service's address does not work",
                    {{"address", route.address}, {"why", opened.error().message}});
        continue;
      }
    }
    impl->listeners.at(place).targets->all = std::move(route.targets);
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
    co_await std::visit([](auto& relay) { return relay.stop(); }, listener.relay);
  }
  impl->listeners.clear();
}

}  // namespace grapnel::local::kubelet
