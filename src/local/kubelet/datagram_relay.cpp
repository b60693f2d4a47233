#include "local/kubelet/datagram_relay.h"

#include <fcntl.h>
#include <sys/socket.h>

#include <algorithm>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <cerrno>
#include <compare>
#include <cstring>
#include <map>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "base/unless.h"

namespace grapnel::local::kubelet {

namespace asio = boost::asio;

namespace {

using Descriptor = asio::posix::stream_descriptor;

constexpr size_t kMostFlows = 1024;
constexpr size_t kMostEarly = 16;  // datagrams that wait until a flow has its sockets
constexpr int kMostAtATime = 64;   // then others have their turn
constexpr seconds kSilence{120};   // as the kernel's own NAT has it
constexpr seconds kBetweenSweeps{10};
constexpr size_t kLargest = 65536;

struct FlowKey {
  uint64_t from = 0;
  uint64_t to = 0;
  auto operator<=>(const FlowKey&) const = default;
};

uint64_t number_of(const sockaddr_in& place) {
  return uint64_t{place.sin_addr.s_addr} << 16 | place.sin_port;
}

struct Flow {
  std::vector<std::string> early;
  std::optional<Descriptor> near;
  std::optional<Descriptor> far;
  Instant used;
  Spawned task;
};

// Several sockets are bound to the address that a sender speaks to: one for new senders, and one
// for each flow.
void share_address(int socket) {
  const int on = 1;
  setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  fcntl(socket, F_SETFL, O_NONBLOCK);
}

void pass_on(Descriptor& to, std::string_view datagram) {
  const auto try_once = [&] {
    return send(to.native_handle(), datagram.data(), datagram.size(), MSG_NOSIGNAL) >= 0;
  };
  // The first error may be about an earlier datagram.
  if (!try_once()) try_once();
}

}  // namespace

struct DatagramRelay::Impl : std::enable_shared_from_this<Impl> {
  explicit Impl(Options o) : options(std::move(o)) {}

  static Task<> receive(std::shared_ptr<Impl> self, Fd socket);
  static Task<> run(std::shared_ptr<Impl> self, std::shared_ptr<Flow> flow, sockaddr_in from,
                    sockaddr_in to);
  static Task<> pass(std::shared_ptr<Impl> self, std::shared_ptr<Flow> flow, Descriptor& from,
                     Descriptor& to);
  static Task<> sweep(std::shared_ptr<Impl> self);
  Task<Result<Fd>> speak_as(sockaddr_in whom, sockaddr_in to);
  bool receive_one(int socket);
  Flow& flow_of(const sockaddr_in& from, const sockaddr_in& to);
  void make_room();

  Options options;
  Spawned receiving;
  Spawned sweeping;
  std::map<FlowKey, std::shared_ptr<Flow>> flows;
  std::unique_ptr<char[]> buffer = std::make_unique_for_overwrite<char[]>(kLargest);
};

Task<> DatagramRelay::Impl::receive(std::shared_ptr<Impl> self, Fd socket) {
  Descriptor waiting(self->options.executor, socket.release());
  for (;;) {
    const auto [error] =
        co_await waiting.async_wait(Descriptor::wait_read, asio::as_tuple(asio::use_awaitable));
    if (error) co_return;
    for (int i = 0; i < kMostAtATime && self->receive_one(waiting.native_handle()); ++i) {
    }
  }
}

// False: there is none.
bool DatagramRelay::Impl::receive_one(int socket) {
  sockaddr_in from{};
  sockaddr_in to{};
  iovec place{.iov_base = buffer.get(), .iov_len = kLargest};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof to)];
  msghdr message{};
  message.msg_name = &from;
  message.msg_namelen = sizeof from;
  message.msg_iov = &place;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  const ssize_t size = recvmsg(socket, &message, 0);
  if (size < 0) return false;
  for (auto* head = CMSG_FIRSTHDR(&message); head != nullptr; head = CMSG_NXTHDR(&message, head)) {
    if (head->cmsg_level == SOL_IP && head->cmsg_type == IP_ORIGDSTADDR) {
      std::memcpy(&to, CMSG_DATA(head), sizeof to);
    }
  }
  if (to.sin_family != AF_INET) return true;
  const std::string_view datagram(buffer.get(), static_cast<size_t>(size));
  Flow& flow = flow_of(from, to);
  flow.used = options.clock.instant();
  if (flow.far) {
    pass_on(*flow.far, datagram);
  } else if (flow.early.size() < kMostEarly) {
    flow.early.emplace_back(datagram);
  }
  return true;
}

Flow& DatagramRelay::Impl::flow_of(const sockaddr_in& from, const sockaddr_in& to) {
  const FlowKey key{.from = number_of(from), .to = number_of(to)};
  const auto known = flows.find(key);
  if (known != flows.end() && !known->second->task.done()) return *known->second;
  make_room();
  auto& flow = flows[key] = std::make_shared<Flow>();
  flow->task = spawn(options.executor, run(shared_from_this(), flow, from, to));
  return *flow;
}

// By ending the flow that has been silent the longest.
void DatagramRelay::Impl::make_room() {
  if (flows.size() < kMostFlows) return;
  flows.erase(std::min_element(flows.begin(), flows.end(), [](const auto& a, const auto& b) {
    return a.second->used < b.second->used;
  }));
}

Task<> DatagramRelay::Impl::run(std::shared_ptr<Impl> self, std::shared_ptr<Flow> flow,
                                sockaddr_in from, sockaddr_in to) {
  auto far = co_await self->options.connector->connect(to);
  if (!far) co_return;
  auto near = co_await self->speak_as(to, from);
  if (!near) co_return;
  flow->near.emplace(self->options.executor, near->release());
  flow->far.emplace(self->options.executor, far->release());
  for (const std::string& datagram : std::exchange(flow->early, {})) {
    pass_on(*flow->far, datagram);
  }
  co_await unless(pass(self, flow, *flow->near, *flow->far),
                  pass(self, flow, *flow->far, *flow->near));
  // Datagrams that arrive after the end must not wait here.
  flow->near.reset();
  flow->far.reset();
}

Task<Result<Fd>> DatagramRelay::Impl::speak_as(sockaddr_in whom, sockaddr_in to) {
  auto socket = co_await options.network.transparent_socket();
  if (!socket) co_return fail(socket.error());
  share_address(socket->get());
  if (bind(socket->get(), generic(whom), sizeof whom) != 0 ||
      connect(socket->get(), generic(to), sizeof to) != 0) {
    co_return fail(Reason::kSystem, "a socket for UDP: {}", std::strerror(errno));
  }
  // Before it was connected, it may have received datagrams of other senders.
  while (recv(socket->get(), buffer.get(), kLargest, 0) >= 0) {
  }
  co_return socket;
}

// Until there is an error.
Task<> DatagramRelay::Impl::pass(std::shared_ptr<Impl> self, std::shared_ptr<Flow> flow,
                                 Descriptor& from, Descriptor& to) {
  char* const buffer = self->buffer.get();
  for (;;) {
    const auto [error] =
        co_await from.async_wait(Descriptor::wait_read, asio::as_tuple(asio::use_awaitable));
    if (error) co_return;
    flow->used = self->options.clock.instant();
    for (int i = 0; i < kMostAtATime; ++i) {
      const ssize_t size = recv(from.native_handle(), buffer, kLargest, 0);
      if (size < 0 && errno == EAGAIN) break;
      if (size < 0) co_return;
      pass_on(to, {buffer, static_cast<size_t>(size)});
    }
  }
}

Task<> DatagramRelay::Impl::sweep(std::shared_ptr<Impl> self) {
  Clock& clock = self->options.clock;
  for (;;) {
    co_await clock.sleep(kBetweenSweeps);
    const Instant silent_since = clock.instant() - kSilence;
    std::erase_if(self->flows, [&](const auto& entry) {
      return entry.second->task.done() || entry.second->used < silent_since;
    });
  }
}

Task<Result<DatagramRelay>> DatagramRelay::open(Options options, std::string address,
                                                uint16_t port) {
  const auto number =
      address.empty() ? std::optional<uint32_t>(INADDR_ANY) : parse_address(address);
  if (!number) co_return fail(Reason::kUsage, "'{}' is no IPv4 address", address);
  const sockaddr_in where = socket_address(*number, port);
  auto socket = co_await options.network.transparent_socket();
  if (!socket) co_return fail(socket.error());
  share_address(socket->get());
  const int on = 1;
  if (setsockopt(socket->get(), SOL_IP, IP_RECVORIGDSTADDR, &on, sizeof on) != 0 ||
      bind(socket->get(), generic(where), sizeof where) != 0) {
    co_return fail(Reason::kSystem, "UDP at {}:{}: {}", address, port, std::strerror(errno));
  }
  const auto impl = std::make_shared<Impl>(std::move(options));
  impl->receiving = spawn(impl->options.executor, Impl::receive(impl, std::move(*socket)));
  impl->sweeping = spawn(impl->options.executor, Impl::sweep(impl));
  co_return DatagramRelay(impl);
}

DatagramRelay::DatagramRelay(DatagramRelay&&) noexcept = default;
DatagramRelay& DatagramRelay::operator=(DatagramRelay&&) noexcept = default;

DatagramRelay::~DatagramRelay() {
  if (!impl_) return;
  impl_->receiving.cancel();
  impl_->sweeping.cancel();
  impl_->flows.clear();
}

Task<> DatagramRelay::stop() {
  const auto impl = impl_;
  for (Spawned* task : {&impl->receiving, &impl->sweeping}) {
    task->cancel();
    co_await task->join();
  }
  for (auto& [key, flow] : impl->flows) flow->task.cancel();
  for (auto& [key, flow] : impl->flows) co_await flow->task.join();
  impl->flows.clear();
}

}  // namespace grapnel::local::kubelet
