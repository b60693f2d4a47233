#include "local/kubelet/service_proxy.h"

#include <arpa/inet.h>
#include <sys/socket.h>

#include <map>
#include <set>

#include "base/log.h"
#include "local/kubelet/relay.h"

namespace grapnel::local::kubelet {
namespace {

using Place = std::pair<std::string, uint16_t>;  // address and port

// In turn, to whoever serves now.
struct ToOneOf final : Connector {
  ToOneOf(Executor e, PodRunner& r) : executor(e), runner(r) {}

  Task<Result<Fd>> connect(int) override {
    // Pods come and go: one that refuses is passed over.
    for (size_t tries = targets.size(); tries > 0 && !targets.empty(); --tries) {
      const Target target = targets[next++ % targets.size()];
      auto there = target.is_host
                       ? co_await connect_from_host(executor, htonl(INADDR_LOOPBACK), target.port)
                       : co_await runner.connect(target.address, target.port);
      if (there) co_return there;
    }
    co_return fail(Reason::kTransport, "nobody serves");
  }

  Executor executor;
  PodRunner& runner;
  std::vector<Target> targets;
  size_t next = 0;
};

}  // namespace

struct ServiceProxy::Impl {
  struct Listener {
    std::shared_ptr<ToOneOf> target;
    Relay relay;
  };

  Impl(Executor given, PodRunner& r) : executor(given), runner(r) {}
  Task<Result<>> open(Place place);

  Executor executor;
  PodRunner& runner;
  std::map<Place, Listener> listeners;
  std::set<std::string> addresses;
};

Task<Result<>> ServiceProxy::Impl::open(Place place) {
  ClusterNetwork* network = runner.network();
  if (!addresses.contains(place.first)) {
    if (auto added = co_await network->add_address(place.first); !added) co_return added;
    addresses.insert(place.first);
  }
  auto fd = co_await network->socket(AF_INET, SOCK_STREAM);
  if (!fd) co_return fail(fd.error());
  if (auto listening = listen_at(fd->get(), place.first, place.second); !listening) {
    co_return listening;
  }
  auto target = std::make_shared<ToOneOf>(executor, runner);
  Relay relay(executor, std::move(*fd), target);
  listeners.emplace(place, Listener{.target = std::move(target), .relay = std::move(relay)});
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
    impl->listeners.at(place).target->targets = std::move(route.targets);
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
  for (auto& [place, listener] : impl->listeners) co_await listener.relay.stop();
  impl->listeners.clear();
}

}  // namespace grapnel::local::kubelet
