#include "local/node/shim/anchor.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "local/node/shim/netlink.h"
#include "local/node/shim/redirect.h"
#include "local/node/shim/util.h"

namespace grapnel::local::shim {
namespace {

constexpr int kMostClients = 8;
constexpr unsigned kServicePrefix = 16;
int g_dns[2] = {-1, -1};  // UDP, TCP
// Why pods cannot reach beyond the cluster: not at all, or not by UDP.
char* g_no_way_out = nullptr;
char* g_no_way_for_datagrams = nullptr;

int dns_socket(const char* address, int type) {
  sockaddr_in where{};
  where.sin_family = AF_INET;
  where.sin_port = htons(53);
  inet_pton(AF_INET, address, &where.sin_addr);
  const int fd = socket(AF_INET, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  const int on = 1;
  if (fd >= 0) setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (fd < 0 || bind(fd, reinterpret_cast<sockaddr*>(&where), sizeof where) != 0 ||
      (type == SOCK_STREAM && listen(fd, 64) != 0)) {
    failed("listening for DNS on %s", address);
    if (fd >= 0) close(fd);
    return -1;
  }
  return fd;
}

void answer(int client, const int* fds, size_t count, bool ok) {
  Buffer bytes;
  Writer writer(bytes);
  writer.message(Message::kAnchorReply);
  if (g_no_way_out != nullptr) writer.text(Field::kNoWayOut, g_no_way_out);
  if (g_no_way_for_datagrams != nullptr) {
    writer.text(Field::kNoWayForDatagrams, g_no_way_for_datagrams);
  }
  if (!ok) writer.text(Field::kError, failure());
  send_packet(client, bytes.view(), fds, ok ? count : 0);
}

void give_namespaces(int client, const Config& config) {
  int fds[2] = {open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC), -1};
  if ((config.namespaces & CLONE_NEWUSER) != 0)
    fds[1] = open("/proc/self/ns/user", O_RDONLY | O_CLOEXEC);
  const bool ok = fds[0] >= 0 || failed("opening /proc/self/ns/net");
  answer(client, fds, fds[1] >= 0 ? 2 : 1, ok);
  for (const int fd : fds) {
    if (fd >= 0) close(fd);
  }
}

void give_socket(int client, uint64_t domain, uint64_t type, bool is_transparent) {
  const int fd = socket(static_cast<int>(domain), static_cast<int>(type) | SOCK_CLOEXEC, 0);
  const int on = 1;
  const bool ok =
      fd >= 0 && (!is_transparent || setsockopt(fd, SOL_IP, IP_TRANSPARENT, &on, sizeof on) == 0);
  answer(client, &fd, 1, ok || failed("making a socket"));
  if (fd >= 0) close(fd);
}

void change_address(int client, const Config& config, const char* address, bool add) {
  Netlink netlink;
  const bool ok = netlink.open() && (add ? netlink.add_address(config.bridge, address, 32)
                                         : netlink.remove_address(config.bridge, address, 32));
  answer(client, nullptr, 0, ok);
}

// False: told to end.
bool handle(int client, const Config& config, std::string_view packet) {
  Reader reader(packet);
  const Message message = reader.message();
  FieldValue value;
  uint64_t domain = AF_INET;
  uint64_t type = SOCK_STREAM;
  bool is_transparent = false;
  const char* address = "";
  while (reader.next(value)) {
    if (value.field == Field::kDomain) domain = value.number();
    if (value.field == Field::kSocketType) type = value.number();
    if (value.field == Field::kTransparent) is_transparent = value.number() != 0;
    if (value.field == Field::kAddress) address = value.text.data();
  }
  switch (message) {
    case Message::kAnchorNamespaces:
      give_namespaces(client, config);
      break;
    case Message::kAnchorSocket:
      give_socket(client, domain, type, is_transparent);
      break;
    case Message::kAnchorDns:
      answer(client, g_dns, 2, true);
      break;
    case Message::kAnchorAddAddress:
      change_address(client, config, address, true);
      break;
    case Message::kAnchorRemoveAddress:
      change_address(client, config, address, false);
      break;
    case Message::kShutdown:
      return false;
    default:
      break;
  }
  return true;
}

}  // namespace

bool set_up_anchor(const Config& c) {
  Netlink netlink;
  if (!netlink.open() || !netlink.set_up("lo") || !netlink.add_bridge(c.bridge, c.gateway) ||
      !netlink.add_address(c.bridge, c.gateway, c.prefix) ||
      !netlink.add_address(c.bridge, c.dns_address, 32) || !netlink.set_up(c.bridge)) {
    return false;
  }
  write_small("/proc/sys/net/ipv4/ip_unprivileged_port_start", "0");
  // Where the kernel has br_netfilter, its rules would see the bridge's datagrams before ours.
  write_small("/proc/sys/net/bridge/bridge-nf-call-iptables", "0");
  const ClusterRange inside[] = {{.address = c.gateway, .prefix = c.prefix},
                                 {.address = c.dns_address, .prefix = kServicePrefix}};
  if (!redirect_connections(inside, 2, kOutboundPort)) g_no_way_out = copy_text(failure());
  if (!redirect_datagrams(inside, 2, kOutboundPort) || !netlink.keep_datagrams()) {
    g_no_way_for_datagrams = copy_text(failure());
  }
  g_dns[0] = dns_socket(c.dns_address, SOCK_DGRAM);
  g_dns[1] = dns_socket(c.dns_address, SOCK_STREAM);
  return g_dns[0] >= 0 && g_dns[1] >= 0;
}

void serve_anchor(const Config& config, int listener) {
  prctl(PR_SET_NAME, "grapnel-anchor");
  pollfd polled[kMostClients + 1];
  int clients = 0;
  polled[0] = {.fd = listener, .events = POLLIN, .revents = 0};
  static char packet[4096];
  while (true) {
    if (poll(polled, static_cast<nfds_t>(clients + 1), -1) < 0) continue;
    for (int i = clients; i > 0; --i) {
      if (polled[i].revents == 0) continue;
      int fds[kMostFds];
      size_t fd_count = 0;
      const ssize_t size = receive_packet(polled[i].fd, packet, sizeof packet, fds, &fd_count);
      for (size_t k = 0; k < fd_count; ++k) close(fds[k]);
      if (size < 0 && errno == EAGAIN) continue;
      if (size <= 0) {
        close(polled[i].fd);
        polled[i] = polled[clients--];
      } else if (!handle(polled[i].fd, config, {packet, static_cast<size_t>(size)})) {
        return;
      }
    }
    if (polled[0].revents == 0) continue;
    const int fd = accept4(listener, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd >= 0 && clients < kMostClients) {
      polled[++clients] = {.fd = fd, .events = POLLIN, .revents = 0};
    } else if (fd >= 0) {
      close(fd);
    }
  }
}

}  // namespace grapnel::local::shim
