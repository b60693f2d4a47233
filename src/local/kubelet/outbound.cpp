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
    co_return co_await connect_from_host(executor, wanted.sin_addr.s_addr, ntohs(wanted.sin_port));
  }
  Executor executor;
};

}  // namespace

Task<Result<>> Outbound::serve(ClusterNetwork& network) {
  auto socket = co_await network.socket(AF_INET, SOCK_STREAM);
  if (!socket) co_return fail(socket.error());
  if (auto listening = listen_at(socket->get(), "", kOutboundPort); !listening) {
    co_return listening;
  }
  relay_.emplace(executor_, std::move(*socket), std::make_shared<ToWhereItWasGoing>(executor_));
  co_return Result<>();
}

Task<> Outbound::stop() {
  if (relay_) co_await relay_->stop();
  relay_.reset();
}

}  // namespace grapnel::local::kubelet
