// As much of rtnetlink as a bridge with pods needs. A Netlink acts on the network namespace in
// which it was opened, wherever its process goes afterwards.
#pragma once

#include <cstdint>

#include "local/node/shim/util.h"

namespace grapnel::local::shim {

class Netlink {
 public:
  Netlink() = default;
  Netlink(const Netlink&) = delete;
  Netlink& operator=(const Netlink&) = delete;
  ~Netlink();
  bool open();

  int index_of(const char* link);  // 0: there is none
  // Hardware addresses are made from the IPv4 addresses. So the bridge does not take over the
  // address of a port, which would cut off everybody who knows its old one, and an IP address that
  // is used again keeps its hardware address.
  bool add_bridge(const char* name, const char* address);
  // A pair: `name` here, a port of the bridge and up; `peer` in the namespace of process `pid`.
  struct Peer {
    const char* name;
    const char* address;
    int pid;
  };
  bool add_veth(const char* name, const char* bridge, const Peer& peer);
  bool set_up(const char* link);
  bool add_address(const char* link, const char* address, unsigned prefix);
  bool remove_address(const char* link, const char* address, unsigned prefix);
  bool add_default_route(const char* gateway);
  // Datagrams that no other route takes are for this machine, whatever their address.
  bool keep_datagrams();

 private:
  struct Request;
  bool ask(Request& request);
  bool address(const char* link, const char* address, unsigned prefix, bool add);
  int fd_ = -1;
  uint32_t sequence_ = 0;
};

}  // namespace grapnel::local::shim
