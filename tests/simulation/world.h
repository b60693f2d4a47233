// One schedule: operators, a server, a network, users and faults, all decided by one 64-bit seed.
// The same seed gives the same run, to the last byte.
//
// First comes a time of trouble: requests and answers get lost, streams lag and break, histories
// expire, operators crash at any await or freeze, and two of them contend for the lease. Then all
// faults end, and the world must come to rest as its users asked for, with caches equal to the
// server, and stay at rest.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/random.h"
#include "tests/simulation/server.h"
#include "tests/simulation/subject.h"
#include "tests/simulation/virtual_clock.h"
#include "tests/simulation/wire.h"

namespace grapnel::simulation {

struct Report {
  std::optional<std::string> violation;
  uint64_t digest = 0;  // of everything that was written
  size_t writes = 0;
  size_t crashes = 0;
  Duration virtual_time{};
};

// Makes the server of a world; the clock outlives it.
using MakeServer = std::function<std::unique_ptr<Server>(const Subject& subject,
                                                         VirtualClock& clock, Random& random)>;
// What every operator writes, whatever it operates.
std::vector<ServedKind> with_common(std::vector<ServedKind> kinds);
std::unique_ptr<Server> make_model(const Subject& subject, VirtualClock& clock, Random& random);

struct WorldOptions {
  bool verbose = false;
  MakeServer make_server = make_model;
};

class World {
 public:
  World(uint64_t seed, Subject& subject, WorldOptions options = {});
  ~World();
  Report run();

 private:
  struct Operator;

  void plan_trouble();
  void start_operator(size_t slot);
  void crash(size_t slot);
  void crash_and_restart(size_t slot);
  void freeze(size_t slot, Duration length);
  void trouble_wire(size_t slot);
  void steal_lease();
  void disturb_later();
  void collect_garbage_later();
  void live_later(Duration after = Duration::zero());
  void wake_cluster();
  void run_until(Instant end);
  void run_loops();
  bool run_loop(size_t slot);
  void settle();
  void stay_at_rest();
  void saw_write(const WriteSeen& write);
  void check_leaders();
  std::optional<std::string> unsettled();
  bool is_anybody_deaf() const;
  std::optional<std::string> cache_differs(const Operator& op) const;
  void violate(std::string what);
  void say(const std::string& what) const;

  uint64_t seed_;
  Subject& subject_;
  WorldOptions options_;
  VirtualClock clock_;
  Random random_;
  Faults faults_;
  bool calm_ = false;  // no faults at all: then nothing may be written in vain
  bool with_lease_ = false;
  bool trouble_ = true;
  std::unique_ptr<Server> server_;
  std::string ns_;                                    // that the operators look at; "": all
  std::vector<std::unique_ptr<Operator>> operators_;  // by slot; null: down
  size_t incarnations_ = 0;
  // The cluster has nothing to do until somebody writes something, or for a while.
  bool garbage_waits_ = false;
  bool cluster_waits_ = false;
  uint64_t lives_ = 0;
  Report report_;
};

}  // namespace grapnel::simulation
