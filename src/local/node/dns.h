// The cluster's DNS: answers for pods and services from a table, and passes other names on to the
// host's resolver. A question for a name that is about to get its address waits for it.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/async.h"
#include "base/fd.h"
#include "base/result.h"
#include "local/node/dns_message.h"

namespace grapnel::local::dns {

// What the cluster's names mean.
class Table {
 public:
  struct Service {
    uint16_t port = 0;
    std::string target;
  };
  // "worker-0.exp.default.svc.cluster.local"; several addresses for one name are all given.
  void add_address(std::string_view name, uint32_t address);
  // "_http._tcp.exp.default.svc.cluster.local"
  void add_service(std::string_view name, Service service);
  void add_alias(std::string_view name, std::string_view target);  // ExternalName

  // It is somebody's name, who has no address yet.
  void await(std::string_view name);
  // Until then, names directly below this one may be given to somebody who is not there yet.
  void await_below(std::string_view zone, Instant until);
  // It is somebody's name who does not get an address any more, or not for now.
  void deny(std::string_view name);

  bool knows(std::string_view name) const;  // also names that only have others below them
  // Whether to wait with the answer: there is none, and one will come.
  bool is_awaited(std::string_view name, Instant now) const;

 private:
  friend Response answer(const Table&, const Query&, size_t);
  void note(std::string_view name);
  std::map<std::string, std::vector<uint32_t>, std::less<>> addresses_;
  std::map<std::string, std::vector<Service>, std::less<>> services_;
  std::map<std::string, std::string, std::less<>> aliases_;
  std::map<uint32_t, std::string> names_;  // for questions by address
  std::set<std::string, std::less<>> known_;
  std::set<std::string, std::less<>> awaited_;
  std::set<std::string, std::less<>> denied_;
  std::map<std::string, Instant, std::less<>> awaited_below_;
};

bool is_ours(std::string_view name);
// For a name that is ours. `turn` moves the order, so that askers do not all take the first.
Response answer(const Table& table, const Query& query, size_t turn);

struct Upstream {
  std::string address;
  uint16_t port = 53;
};
// The nameservers of a resolv.conf.
std::vector<Upstream> parse_upstreams(std::string_view resolv_conf);

class Server {
 public:
  struct Options {
    Executor executor;
    Clock* clock = &system_clock();
    std::function<const Table&()> names;  // as they are now; asked at each question
    std::vector<Upstream> upstreams;      // none: other names fail at once
    Duration patience = seconds(3);       // with one of them
  };
  explicit Server(Options options);
  ~Server();

  // Sockets that are bound, the second one listening.
  void serve(Fd udp, Fd tcp);
  // `names` would say something else now: questions that wait may have their answer.
  void names_changed();
  // Whoever waits for an answer is told to ask again.
  void release();

 private:
  struct Impl;
  std::shared_ptr<Impl> impl_;
  Spawned udp_;
  Spawned tcp_;
};

}  // namespace grapnel::local::dns
