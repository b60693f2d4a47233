#include "local/node/shim/netlink.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/fib_rules.h>
#include <linux/if_link.h>
#include <linux/rtnetlink.h>
#include <linux/veth.h>
#include <net/if.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

namespace grapnel::local::shim {

// A message being built: its header, the header of its family, attributes.
struct Netlink::Request {
  alignas(nlmsghdr) char bytes[1024] = {};

  Request(uint16_t type, uint16_t flags) {
    head()->nlmsg_len = NLMSG_LENGTH(0);
    head()->nlmsg_type = type;
    head()->nlmsg_flags = static_cast<uint16_t>(NLM_F_REQUEST | NLM_F_ACK | flags);
  }
  nlmsghdr* head() { return reinterpret_cast<nlmsghdr*>(bytes); }
  char* end() { return bytes + NLMSG_ALIGN(head()->nlmsg_len); }
  void grow(size_t size) {
    head()->nlmsg_len = NLMSG_ALIGN(head()->nlmsg_len) + static_cast<uint32_t>(size);
  }
  template <class T>
  T* body() {
    T* place = reinterpret_cast<T*>(end());
    grow(sizeof(T));
    return place;
  }
  rtattr* add(uint16_t type, const void* value, size_t size) {
    rtattr* attribute = reinterpret_cast<rtattr*>(end());
    attribute->rta_type = type;
    attribute->rta_len = static_cast<uint16_t>(RTA_LENGTH(size));
    if (size != 0) memcpy(RTA_DATA(attribute), value, size);
    grow(RTA_ALIGN(attribute->rta_len));
    return attribute;
  }
  void add(uint16_t type, const char* text) { add(type, text, strlen(text) + 1); }
  void add(uint16_t type, uint32_t number) { add(type, &number, sizeof number); }
  bool add_hardware_address(const char* ipv4) {
    unsigned char hardware[6] = {0x02, 0x67};  // locally administered, of one station
    if (inet_pton(AF_INET, ipv4, hardware + 2) != 1) return false;
    add(IFLA_ADDRESS, hardware, sizeof hardware);
    return true;
  }
  void route(uint8_t table, uint8_t scope, uint8_t type) {
    auto* route = body<rtmsg>();
    route->rtm_family = AF_INET;
    route->rtm_table = table;
    route->rtm_protocol = RTPROT_BOOT;
    route->rtm_scope = scope;
    route->rtm_type = type;
  }
  rtattr* begin(uint16_t type) { return add(type, nullptr, 0); }
  void finish(rtattr* nested) {
    nested->rta_len = static_cast<uint16_t>(end() - reinterpret_cast<char*>(nested));
  }
};

Netlink::~Netlink() {
  if (fd_ >= 0) close(fd_);
}

bool Netlink::open() {
  fd_ = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
  return fd_ >= 0 || failed("opening a netlink socket");
}

bool Netlink::ask(Request& request) {
  request.head()->nlmsg_seq = ++sequence_;
  if (send(fd_, request.bytes, request.head()->nlmsg_len, 0) < 0) return false;
  alignas(nlmsghdr) char answer[4096];
  while (true) {
    const ssize_t got = recv(fd_, answer, sizeof answer, 0);
    if (got < 0 && errno == EINTR) continue;
    if (got < static_cast<ssize_t>(NLMSG_LENGTH(sizeof(nlmsgerr)))) return false;
    const auto* head = reinterpret_cast<const nlmsghdr*>(answer);
    if (head->nlmsg_seq != sequence_ || head->nlmsg_type != NLMSG_ERROR) continue;
    const auto* error = reinterpret_cast<const nlmsgerr*>(NLMSG_DATA(head));
    errno = -error->error;
    return error->error == 0;
  }
}

int Netlink::index_of(const char* link) {
  ifreq request{};
  strncpy(request.ifr_name, link, IFNAMSIZ - 1);
  // Asked on the netlink socket, so that it is about the same namespace.
  return ioctl(fd_, SIOCGIFINDEX, &request) == 0 ? request.ifr_ifindex : 0;
}

bool Netlink::add_bridge(const char* name, const char* address) {
  Request request(RTM_NEWLINK, NLM_F_CREATE | NLM_F_EXCL);
  request.body<ifinfomsg>()->ifi_family = AF_UNSPEC;
  request.add(IFLA_IFNAME, name);
  if (!request.add_hardware_address(address)) return refused("%s is no IPv4 address", address);
  rtattr* info = request.begin(IFLA_LINKINFO);
  request.add(IFLA_INFO_KIND, "bridge");
  request.finish(info);
  return ask(request) || failed("making the bridge %s", name);
}

bool Netlink::add_veth(const char* name, const char* bridge, const Peer& peer) {
  const int master = index_of(bridge);
  if (master == 0) return failed("looking for the bridge %s", bridge);
  Request request(RTM_NEWLINK, NLM_F_CREATE | NLM_F_EXCL);
  auto* link = request.body<ifinfomsg>();
  link->ifi_flags = IFF_UP;
  link->ifi_change = IFF_UP;
  request.add(IFLA_IFNAME, name);
  request.add(IFLA_MASTER, static_cast<uint32_t>(master));
  rtattr* info = request.begin(IFLA_LINKINFO);
  request.add(IFLA_INFO_KIND, "veth");
  rtattr* data = request.begin(IFLA_INFO_DATA);
  rtattr* other = request.begin(VETH_INFO_PEER);
  request.body<ifinfomsg>();
  request.add(IFLA_IFNAME, peer.name);
  if (!request.add_hardware_address(peer.address)) {
    return refused("%s is no IPv4 address", peer.address);
  }
  request.add(IFLA_NET_NS_PID, static_cast<uint32_t>(peer.pid));
  request.finish(other);
  request.finish(data);
  request.finish(info);
  return ask(request) || failed("making the link %s", name);
}

bool Netlink::set_up(const char* name) {
  Request request(RTM_NEWLINK, 0);
  auto* link = request.body<ifinfomsg>();
  link->ifi_index = index_of(name);
  link->ifi_flags = IFF_UP;
  link->ifi_change = IFF_UP;
  return ask(request) || failed("bringing the link %s up", name);
}

bool Netlink::address(const char* link, const char* text, unsigned prefix, bool add) {
  Request request(add ? RTM_NEWADDR : RTM_DELADDR, add ? NLM_F_CREATE | NLM_F_REPLACE : 0);
  auto* body = request.body<ifaddrmsg>();
  body->ifa_family = AF_INET;
  body->ifa_prefixlen = static_cast<uint8_t>(prefix);
  body->ifa_index = static_cast<uint32_t>(index_of(link));
  in_addr address{};
  if (inet_pton(AF_INET, text, &address) != 1) return refused("%s is no IPv4 address", text);
  request.add(IFA_LOCAL, &address, sizeof address);
  request.add(IFA_ADDRESS, &address, sizeof address);
  return ask(request) || failed("giving %s the address %s", link, text);
}

bool Netlink::add_address(const char* link, const char* text, unsigned prefix) {
  return address(link, text, prefix, true);
}

bool Netlink::remove_address(const char* link, const char* text, unsigned prefix) {
  return address(link, text, prefix, false);
}

bool Netlink::add_default_route(const char* gateway) {
  Request request(RTM_NEWROUTE, NLM_F_CREATE | NLM_F_REPLACE);
  request.route(RT_TABLE_MAIN, RT_SCOPE_UNIVERSE, RTN_UNICAST);
  in_addr address{};
  if (inet_pton(AF_INET, gateway, &address) != 1) return refused("%s is no IPv4 address", gateway);
  request.add(RTA_GATEWAY, &address, sizeof address);
  return ask(request) || failed("setting the default route");
}

bool Netlink::keep_datagrams() {
  constexpr uint8_t kTable = 100;
  constexpr uint32_t kAfterAllOthers = 40000;
  Request route(RTM_NEWROUTE, NLM_F_CREATE | NLM_F_REPLACE);
  route.route(kTable, RT_SCOPE_HOST, RTN_LOCAL);
  route.add(RTA_OIF, static_cast<uint32_t>(index_of("lo")));
  if (!ask(route)) return failed("setting the route of datagrams");

  Request request(RTM_NEWRULE, NLM_F_CREATE);
  auto* rule = request.body<fib_rule_hdr>();
  rule->family = AF_INET;
  rule->table = kTable;
  rule->action = FR_ACT_TO_TBL;
  const uint8_t protocol = IPPROTO_UDP;
  request.add(FRA_IP_PROTO, &protocol, sizeof protocol);
  request.add(FRA_PRIORITY, kAfterAllOthers);
  return ask(request) || failed("setting the rule for datagrams");
}

}  // namespace grapnel::local::shim
