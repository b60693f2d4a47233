#include "local/kubelet/outbound.h"

#include <linux/netfilter_ipv4.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>

namespace grapnel::local::kubelet {
namespace {

struct ToWhereItWasGoing final : Connector {
  explicit ToWhereItWasGoing(Executor e) : executor(e) {}

  Task<Result<Fd>> connect(int client) override {
    sockaddr_in wanted{};
    socklen_t size = sizeof wanted;
    if (getsockopt(client, SOL_IP, SO_ORIGINAL_DST, &wanted, &size) != 0) {
      co_return fail(Reason::kSystem, "where a connection was going: {}", std::strerror(errno));
    }
    co_return co_await connect_from_host(executor, ntohl(wanted.sin_addr.s_addr),
                                         ntohs(wanted.sin_port));
  }
  Executor executor;
};

// The same for datagrams.
struct ToThatAddress final : DatagramConnector {
  Task<Result<Fd>> connect(const sockaddr_in& wanted) override {
    // Like a router, we do not pass multicast on.
    if (IN_MULTICAST(ntohl(wanted.sin_addr.s_addr))) {
      co_return fail(Reason::kUsage, "an address of many");
    }
    Fd fd(socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (!fd || ::connect(fd.get(), generic(wanted), sizeof wanted) != 0) {
      co_return fail(Reason::kSystem, "UDP to beyond the cluster: {}", std::strerror(errno));
    }
    co_return fd;
  }
};

}  // namespace

Task<Result<>> Outbound::serve(ClusterNetwork& network) {
  if (network.no_way_out().empty()) {
    if (auto served = co_await serve_connections(network); !served) co_return served;
  }
  if (network.no_way_for_datagrams().empty()) co_return co_await serve_datagrams(network);
  co_return Result<>();
}

Task<Result<>> Outbound::serve_connections(ClusterNetwork& network) {
  auto socket = co_await network.socket(AF_INET, SOCK_STREAM);
  if (!socket) co_return fail(socket.error());
  if (auto listening = listen_at(socket->get(), "", kOutboundPort); !listening) {
    co_return listening;
  }
  connections_.emplace(executor_, std::move(*socket),
                       std::make_shared<ToWhereItWasGoing>(executor_));
  co_return Result<>();
}

Task<Result<>> Outbound::serve_datagrams(ClusterNetwork& network) {
  auto relay = co_await DatagramRelay::open({.executor = executor_,
                                             .clock = clock_,
                                             .network = network,
                                             .connector = std::make_shared<ToThatAddress>()},
                                            "", kOutboundPort);
  if (!relay) co_return fail(relay.error());
  datagrams_.emplace(std::move(*relay));
  co_return Result<>();
}

Task<> Outbound::stop() {
  if (connections_) co_await connections_->stop();
  connections_.reset();
  if (datagrams_) co_await datagrams_->stop();
  datagrams_.reset();
}

}  // namespace grapnel::local::kubelet
