#include "local/node/shim/redirect.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/netfilter.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/netlink.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "local/node/shim/util.h"

namespace grapnel::local::shim {
namespace {

constexpr const char* kTable = "grapnel";
constexpr uint32_t kDestinationOffset = 16;  // in an IPv4 header

// A chain that packets pass before they are routed.
struct Chain {
  const char* name;
  const char* type;
  int32_t priority;
};
constexpr Chain kConnections{.name = "connections", .type = "nat", .priority = -100};
constexpr Chain kDatagrams{.name = "datagrams", .type = "filter", .priority = -150};

// Messages that the kernel accepts together: all or none.
class Batch {
 public:
  Batch() { control(NFNL_MSG_BATCH_BEGIN); }

  void message(int type) {
    // Rules apply in the order in which they are added.
    open(static_cast<uint16_t>(NFNL_SUBSYS_NFTABLES << 8 | type),
         NLM_F_CREATE | NLM_F_APPEND | NLM_F_ACK, NFPROTO_IPV4, 0);
  }
  void put(int type, const void* value, size_t size) {
    auto* attribute = reinterpret_cast<nlattr*>(bytes_ + size_);
    attribute->nla_type = static_cast<uint16_t>(type);
    attribute->nla_len = static_cast<uint16_t>(NLA_HDRLEN + size);
    if (size != 0) memcpy(bytes_ + size_ + NLA_HDRLEN, value, size);
    grow(NLA_ALIGN(attribute->nla_len));
  }
  void put(int type, const char* text) { put(type, text, strlen(text) + 1); }
  void put(int type, uint32_t number) {
    number = htonl(number);
    put(type, &number, sizeof number);
  }
  size_t begin(int type) {
    const size_t start = size_;
    put(type | NLA_F_NESTED, nullptr, 0);
    return start;
  }
  void end(size_t start) {
    reinterpret_cast<nlattr*>(bytes_ + start)->nla_len = static_cast<uint16_t>(size_ - start);
  }
  bool send_and_wait();

 private:
  void grow(size_t size) {
    size_ += size;
    head_->nlmsg_len += static_cast<uint32_t>(size);
  }
  void open(uint16_t type, int flags, uint8_t family, uint16_t resource) {
    head_ = reinterpret_cast<nlmsghdr*>(bytes_ + size_);
    *head_ = {.nlmsg_len = 0,
              .nlmsg_type = type,
              .nlmsg_flags = static_cast<uint16_t>(NLM_F_REQUEST | flags),
              .nlmsg_seq = ++sequence_,
              .nlmsg_pid = 0};
    grow(NLMSG_HDRLEN);
    const nfgenmsg family_head{.nfgen_family = family, .version = 0, .res_id = htons(resource)};
    memcpy(bytes_ + size_, &family_head, sizeof family_head);
    grow(NLMSG_ALIGN(sizeof family_head));
  }
  void control(uint16_t type) { open(type, 0, AF_UNSPEC, NFNL_SUBSYS_NFTABLES); }

  alignas(nlmsghdr) char bytes_[4096] = {};
  size_t size_ = 0;
  nlmsghdr* head_ = nullptr;
  uint32_t sequence_ = 0;
};

bool Batch::send_and_wait() {
  const uint32_t last = sequence_;
  control(NFNL_MSG_BATCH_END);
  const int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_NETFILTER);
  bool is_done = false;
  int error = fd < 0 || send(fd, bytes_, size_, 0) < 0 ? errno : 0;
  alignas(nlmsghdr) char answer[8192];
  while (error == 0 && !is_done) {
    ssize_t left = recv(fd, answer, sizeof answer, 0);
    if (left < 0 && errno == EINTR) continue;
    if (left < 0) error = errno;
    for (auto* head = reinterpret_cast<nlmsghdr*>(answer); error == 0 && NLMSG_OK(head, left);
         head = NLMSG_NEXT(head, left)) {
      if (head->nlmsg_type != NLMSG_ERROR) continue;
      error = -reinterpret_cast<const nlmsgerr*>(NLMSG_DATA(head))->error;
      is_done = head->nlmsg_seq == last;
    }
  }
  if (fd >= 0) close(fd);
  errno = error;
  return error == 0;
}

// One rule: expressions in the order in which packets pass them.
class Rule {
 public:
  Rule(Batch& batch, const Chain& chain) : batch_(batch) {
    batch_.message(NFT_MSG_NEWRULE);
    batch_.put(NFTA_RULE_TABLE, kTable);
    batch_.put(NFTA_RULE_CHAIN, chain.name);
    list_ = batch_.begin(NFTA_RULE_EXPRESSIONS);
  }
  ~Rule() { batch_.end(list_); }
  Rule(const Rule&) = delete;
  Rule& operator=(const Rule&) = delete;

  void load_destination() {
    const Expression e(batch_, "payload");
    batch_.put(NFTA_PAYLOAD_DREG, NFT_REG_1);
    batch_.put(NFTA_PAYLOAD_BASE, NFT_PAYLOAD_NETWORK_HEADER);
    batch_.put(NFTA_PAYLOAD_OFFSET, kDestinationOffset);
    batch_.put(NFTA_PAYLOAD_LEN, sizeof(in_addr));
  }
  void mask(uint32_t bits) {
    const Expression e(batch_, "bitwise");
    batch_.put(NFTA_BITWISE_SREG, NFT_REG_1);
    batch_.put(NFTA_BITWISE_DREG, NFT_REG_1);
    batch_.put(NFTA_BITWISE_LEN, sizeof bits);
    const uint32_t none = 0;
    value(NFTA_BITWISE_MASK, &bits, sizeof bits);
    value(NFTA_BITWISE_XOR, &none, sizeof none);
  }
  void has_protocol(uint8_t protocol) {
    {
      const Expression e(batch_, "meta");
      batch_.put(NFTA_META_DREG, NFT_REG_1);
      batch_.put(NFTA_META_KEY, NFT_META_L4PROTO);
    }
    is(&protocol, sizeof protocol);
  }
  void is(const void* bytes, size_t size) {
    const Expression e(batch_, "cmp");
    batch_.put(NFTA_CMP_SREG, NFT_REG_1);
    batch_.put(NFTA_CMP_OP, NFT_CMP_EQ);
    value(NFTA_CMP_DATA, bytes, size);
  }
  void accept() {
    const Expression e(batch_, "immediate");
    batch_.put(NFTA_IMMEDIATE_DREG, NFT_REG_VERDICT);
    const size_t data = batch_.begin(NFTA_IMMEDIATE_DATA);
    const size_t verdict = batch_.begin(NFTA_DATA_VERDICT);
    batch_.put(NFTA_VERDICT_CODE, NF_ACCEPT);
    batch_.end(verdict);
    batch_.end(data);
  }
  void redirect(uint16_t port) {
    load_port(port);
    const Expression e(batch_, "redir");
    batch_.put(NFTA_REDIR_REG_PROTO_MIN, NFT_REG_1);
  }
  void give_to_socket(uint16_t port) {
    load_port(port);
    const Expression e(batch_, "tproxy");
    batch_.put(NFTA_TPROXY_FAMILY, NFPROTO_IPV4);
    batch_.put(NFTA_TPROXY_REG_PORT, NFT_REG_1);
  }

 private:
  struct Expression {
    Expression(Batch& b, const char* name) : batch(b), element(b.begin(NFTA_LIST_ELEM)) {
      batch.put(NFTA_EXPR_NAME, name);
      data = batch.begin(NFTA_EXPR_DATA);
    }
    ~Expression() {
      batch.end(data);
      batch.end(element);
    }
    Expression(const Expression&) = delete;
    Expression& operator=(const Expression&) = delete;
    Batch& batch;
    size_t element;
    size_t data = 0;
  };
  void load_port(uint16_t port) {
    port = htons(port);
    const Expression e(batch_, "immediate");
    batch_.put(NFTA_IMMEDIATE_DREG, NFT_REG_1);
    value(NFTA_IMMEDIATE_DATA, &port, sizeof port);
  }
  void value(int type, const void* bytes, size_t size) {
    const size_t start = batch_.begin(type);
    batch_.put(NFTA_DATA_VALUE, bytes, size);
    batch_.end(start);
  }

  Batch& batch_;
  size_t list_ = 0;
};

void add_chain(Batch& batch, const Chain& chain) {
  batch.message(NFT_MSG_NEWTABLE);
  batch.put(NFTA_TABLE_NAME, kTable);
  batch.message(NFT_MSG_NEWCHAIN);
  batch.put(NFTA_CHAIN_TABLE, kTable);
  batch.put(NFTA_CHAIN_NAME, chain.name);
  batch.put(NFTA_CHAIN_TYPE, chain.type);
  const size_t hook = batch.begin(NFTA_CHAIN_HOOK);
  batch.put(NFTA_HOOK_HOOKNUM, NF_INET_PRE_ROUTING);
  batch.put(NFTA_HOOK_PRIORITY, static_cast<uint32_t>(chain.priority));
  batch.end(hook);
}

// What stays inside passes.
bool accept_inside(Batch& batch, const Chain& chain, const ClusterRange* inside, unsigned count) {
  for (unsigned i = 0; i < count; ++i) {
    const uint32_t bits = htonl(~uint32_t{0} << (32 - inside[i].prefix));
    in_addr network{};
    if (inet_pton(AF_INET, inside[i].address, &network) != 1) {
      return refused("%s is no IPv4 address", inside[i].address);
    }
    network.s_addr &= bits;
    Rule rule(batch, chain);
    rule.load_destination();
    rule.mask(bits);
    rule.is(&network, sizeof network);
    rule.accept();
  }
  return true;
}

// hand_over: what a Rule does with what leaves the cluster.
template <class HandOver>
bool set_up(const Chain& chain, const ClusterRange* inside, unsigned count, uint8_t protocol,
            HandOver hand_over) {
  Batch batch;
  add_chain(batch, chain);
  if (!accept_inside(batch, chain, inside, count)) return false;
  {
    Rule rule(batch, chain);
    rule.has_protocol(protocol);
    hand_over(rule);
  }
  return batch.send_and_wait() ||
         failed("setting up the way of %s out of the cluster's network", chain.name);
}

}  // namespace

bool redirect_connections(const ClusterRange* inside, unsigned count, uint16_t port) {
  return set_up(kConnections, inside, count, IPPROTO_TCP, [=](Rule& r) { r.redirect(port); });
}

bool redirect_datagrams(const ClusterRange* inside, unsigned count, uint16_t port) {
  return set_up(kDatagrams, inside, count, IPPROTO_UDP, [=](Rule& r) { r.give_to_socket(port); });
}

}  // namespace grapnel::local::shim
