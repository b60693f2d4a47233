#include "local/node/network.h"

#include <arpa/inet.h>
#include <sched.h>
#include <sys/socket.h>

#include <charconv>

#include "base/strings.h"
#include "local/node/launcher.h"
#include "local/node/sandbox.h"

namespace grapnel::local {
namespace {

using shim::Field;
using shim::Message;

Result<AddressPool> parse_network(const std::string& text) {
  const auto parts = split(text, '/');
  unsigned prefix = 0;
  const auto network = parts.size() == 2 ? parse_address(parts[0]) : std::nullopt;
  if (network) std::from_chars(parts[1].data(), parts[1].data() + parts[1].size(), prefix);
  if (!network || prefix < 8 || prefix > 30) {
    return fail(Reason::kUsage, "'{}' is no IPv4 network such as 10.244.0.0/16", text);
  }
  return AddressPool(*network, prefix);
}

std::string message(Message kind) {
  std::string bytes;
  shim::Writer(bytes).message(kind);
  return bytes;
}

}  // namespace

std::optional<uint32_t> parse_address(std::string_view text) {
  in_addr address{};
  if (inet_pton(AF_INET, std::string(text).c_str(), &address) != 1) return std::nullopt;
  return ntohl(address.s_addr);
}

std::string format_address(uint32_t address) {
  return fmt::format("{}.{}.{}.{}", address >> 24, address >> 16 & 255, address >> 8 & 255,
                     address & 255);
}

sockaddr_in socket_address(uint32_t address, uint16_t port) {
  sockaddr_in out{};
  out.sin_family = AF_INET;
  out.sin_port = htons(port);
  out.sin_addr.s_addr = htonl(address);
  return out;
}

AddressPool::AddressPool(uint32_t network, unsigned prefix_length)
    : network_(network & ~((1U << (32 - prefix_length)) - 1)),
      prefix_length_(prefix_length),
      next_(2) {}

std::optional<std::string> AddressPool::take() {
  const uint32_t size = 1U << (32 - prefix_length_);
  for (uint32_t tried = 0; tried < size; ++tried) {
    const uint32_t candidate = next_;
    next_ = next_ + 1 >= size - 1 ? 2 : next_ + 1;  // not the network, the gateway, the broadcast
    if (candidate < size - 1 && taken_.insert(network_ + candidate).second) {
      return format_address(network_ + candidate);
    }
  }
  return std::nullopt;
}

void AddressPool::take(std::string_view address) {
  const auto number = parse_address(address);
  if (!number) return;
  taken_.insert(*number);
  const uint32_t offset = *number - network_;
  if (offset >= next_ && offset < (1U << (32 - prefix_length_)) - 2) next_ = offset + 1;
}

void AddressPool::give_back(std::string_view address) {
  if (const auto number = parse_address(address)) taken_.erase(*number);
}

std::string AddressPool::gateway() const {
  return format_address(network_ + 1);
}

ClusterNetwork::ClusterNetwork(NetworkOptions options, AddressPool addresses)
    : options_(std::move(options)),
      addresses_(std::move(addresses)),
      one_at_a_time_(options_.executor, 1) {}

Task<Result<std::unique_ptr<ClusterNetwork>>> ClusterNetwork::open(NetworkOptions options) {
  auto pool = parse_network(options.pod_network);
  if (!pool) co_return fail(pool.error());
  std::unique_ptr<ClusterNetwork> network(new ClusterNetwork(std::move(options), *pool));
  if (auto connected = co_await network->connect(); connected) co_return network;
  if (auto started = co_await network->start_anchor(); !started) {
    co_return fail_in("starting the cluster's network", started.error());
  }
  if (auto connected = co_await network->connect(); !connected) co_return fail(connected.error());
  co_return network;
}

Task<Result<>> ClusterNetwork::connect() {
  auto answer = co_await ask(message(Message::kAnchorNamespaces));
  if (!answer) co_return fail(answer.error());
  if (answer->fds.empty()) co_return fail(Reason::kTransport, "the anchor gave no namespace");
  network_fd_ = std::move(answer->fds[0]);
  if (answer->fds.size() > 1) user_fd_ = std::move(answer->fds[1]);
  shim::Reader reader(answer->bytes);
  reader.message();
  shim::FieldValue value;
  while (reader.next(value)) {
    if (value.field == Field::kNoWayOut) no_way_out_ = value.text;
    if (value.field == Field::kNoWayForDatagrams) no_way_for_datagrams_ = value.text;
  }
  co_return Result<>();
}

Task<Result<>> ClusterNetwork::start_anchor() {
  if (auto made = make_directory(options_.directory, 0700); !made) co_return made;
  std::string config;
  shim::Writer writer(config);
  uint64_t namespaces = CLONE_NEWNET;
  if (options_.isolation == Isolation::kUser) namespaces |= CLONE_NEWUSER;
  writer.number(Field::kNamespaces, namespaces);
  writer.number(Field::kOuterUser, geteuid());
  writer.number(Field::kOuterGroup, getegid());
  writer.text(Field::kPodDirectory, options_.directory);
  writer.text(Field::kBridge, kBridgeName);
  writer.text(Field::kGateway, addresses_.gateway());
  writer.number(Field::kPrefixLength, addresses_.prefix_length());
  writer.text(Field::kDnsAddress, options_.dns_address);
  auto started = co_await launch({.program = options_.shim,
                                  .role = "anchor",
                                  .title = options_.directory,
                                  .config = config,
                                  .fds = {}});
  if (!started) co_return fail(started.error());
  co_return Result<>();
}

Task<Result<Connection::Packet>> ClusterNetwork::ask(std::string request) {
  const auto permit = co_await one_at_a_time_.acquire();
  // If the caller is cancelled while it waits, the answer is left behind, and nobody else must take
  // it for theirs. So the connection is used again only after a complete exchange.
  auto connection = std::move(anchor_);
  if (!connection) {
    auto opened = Connection::open(options_.executor, options_.directory);
    if (!opened) co_return fail(opened.error());
    connection = std::move(*opened);
  }
  if (auto sent = connection->send(request); !sent) co_return fail(sent.error());
  auto answer = co_await connection->receive();
  if (!answer) {
    co_return fail(Reason::kTransport, "the process that holds the cluster's network has ended");
  }
  anchor_ = std::move(connection);
  shim::Reader reader(answer->bytes);
  reader.message();
  shim::FieldValue value;
  while (reader.next(value)) {
    if (value.field == Field::kError) co_return fail(Reason::kSystem, "{}", value.text);
  }
  co_return std::move(*answer);
}

Task<Result<Fd>> ClusterNetwork::socket(int domain, int type) {
  return ask_for_socket(domain, type, false);
}

Task<Result<Fd>> ClusterNetwork::transparent_socket() {
  return ask_for_socket(AF_INET, SOCK_DGRAM, true);
}

Task<Result<Fd>> ClusterNetwork::ask_for_socket(int domain, int type, bool is_transparent) {
  std::string request = message(Message::kAnchorSocket);
  shim::Writer writer(request);
  writer.number(Field::kDomain, static_cast<uint64_t>(domain));
  writer.number(Field::kSocketType, static_cast<uint64_t>(type));
  if (is_transparent) writer.number(Field::kTransparent, 1);
  auto answer = co_await ask(std::move(request));
  if (!answer) co_return fail(answer.error());
  if (answer->fds.empty()) co_return fail(Reason::kTransport, "the anchor gave no socket");
  co_return std::move(answer->fds[0]);
}

Task<Result<std::pair<Fd, Fd>>> ClusterNetwork::dns_sockets() {
  auto answer = co_await ask(message(Message::kAnchorDns));
  if (!answer) co_return fail(answer.error());
  if (answer->fds.size() != 2) co_return fail(Reason::kTransport, "the anchor gave no sockets");
  co_return std::pair(std::move(answer->fds[0]), std::move(answer->fds[1]));
}

Task<Result<>> ClusterNetwork::add_address(std::string address) {
  std::string request = message(Message::kAnchorAddAddress);
  shim::Writer(request).text(Field::kAddress, address);
  auto answer = co_await ask(std::move(request));
  if (!answer) co_return fail(answer.error());
  co_return Result<>();
}

Task<Result<>> ClusterNetwork::remove_address(std::string address) {
  std::string request = message(Message::kAnchorRemoveAddress);
  shim::Writer(request).text(Field::kAddress, address);
  auto answer = co_await ask(std::move(request));
  if (!answer) co_return fail(answer.error());
  co_return Result<>();
}

Task<Result<>> ClusterNetwork::shut_down() {
  const auto permit = co_await one_at_a_time_.acquire();
  network_fd_.reset();
  user_fd_.reset();
  auto opened = Connection::open(options_.executor, options_.directory);
  anchor_.reset();
  if (!opened) co_return Result<>();  // it is gone already
  if (auto sent = (*opened)->send(message(Message::kShutdown)); !sent) co_return sent;
  while (co_await (*opened)->receive()) {
  }
  co_return Result<>();
}

}  // namespace grapnel::local
