// The cluster's own network: a bridge in a network namespace that nothing outside this machine can
// reach. The anchor process (shim/anchor.h) holds it and outlives grapnel.
#pragma once

#include <netinet/in.h>

#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "base/async.h"
#include "base/fd.h"
#include "base/result.h"
#include "local/node/connection.h"
#include "local/node/pod_spec.h"

namespace grapnel::local {

// Hands out addresses of a network, each anew only after all others: names that still lead to a pod
// that is gone should not lead to another one.
class AddressPool {
 public:
  AddressPool(uint32_t network, unsigned prefix_length);
  std::optional<std::string> take();
  void take(std::string_view address);  // it is in use already
  void give_back(std::string_view address);
  std::string gateway() const;  // the network's first
  unsigned prefix_length() const { return prefix_length_; }

 private:
  uint32_t network_;
  unsigned prefix_length_;
  uint32_t next_;
  std::set<uint32_t> taken_;
};

std::optional<uint32_t> parse_address(std::string_view text);
std::string format_address(uint32_t address);
// The same in the form that sockets need.
sockaddr_in socket_address(uint32_t address, uint16_t port);
inline const sockaddr* generic(const sockaddr_in& address) {
  return reinterpret_cast<const sockaddr*>(&address);
}

struct NetworkOptions {
  Executor executor;
  std::string directory;  // of the anchor
  std::string shim;       // the program
  Isolation isolation = Isolation::kRoot;
  std::string pod_network = "10.244.0.0/16";
  std::string dns_address = "10.96.0.10";
};

class ClusterNetwork {
 public:
  // Finds the anchor that an earlier grapnel left, or starts one.
  static Task<Result<std::unique_ptr<ClusterNetwork>>> open(NetworkOptions options);

  int network_fd() const { return network_fd_.get(); }
  int user_fd() const { return user_fd_.get(); }  // -1 as root
  AddressPool& addresses() { return addresses_; }
  const std::string& dns_address() const { return options_.dns_address; }
  // Why connections of pods to beyond the cluster are not handed to kOutboundPort; "": they are.
  const std::string& no_way_out() const { return no_way_out_; }
  const std::string& no_way_for_datagrams() const { return no_way_for_datagrams_; }

  // A socket that lives in the cluster's network: connect() it to a pod, from here.
  Task<Result<Fd>> socket(int domain, int type);
  // For UDP. It can be bound to any address, also one outside the cluster.
  Task<Result<Fd>> transparent_socket();
  // Bound and listening: UDP and TCP.
  Task<Result<std::pair<Fd, Fd>>> dns_sockets();
  Task<Result<>> add_address(std::string address);
  Task<Result<>> remove_address(std::string address);
  // Ends the anchor. Pods that still run lose their network.
  Task<Result<>> shut_down();

 private:
  ClusterNetwork(NetworkOptions options, AddressPool addresses);
  Task<Result<>> connect();
  Task<Result<>> start_anchor();
  Task<Result<Connection::Packet>> ask(std::string request);
  Task<Result<Fd>> ask_for_socket(int domain, int type, bool is_transparent);
  NetworkOptions options_;
  AddressPool addresses_;
  std::unique_ptr<Connection> anchor_;
  Semaphore one_at_a_time_;
  Fd network_fd_;
  Fd user_fd_;
  std::string no_way_out_;
  std::string no_way_for_datagrams_;
};

inline constexpr std::string_view kBridgeName = "grapnel0";
using shim::kOutboundPort;

}  // namespace grapnel::local
