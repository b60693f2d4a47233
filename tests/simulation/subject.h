// What is simulated: some controllers, what users and the cluster do to their objects, and what
// must hold whatever happens. Subjects live beside the controllers they prove.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/random.h"
#include "runtime/manager.h"
#include "tests/simulation/server.h"
#include "tests/simulation/webhooks.h"

namespace grapnel::simulation {

class Subject {
 public:
  virtual ~Subject() = default;

  // ---- what is installed ----
  // What the server serves; Leases and Events beside them are there anyway.
  virtual std::vector<ServedKind> kinds() const = 0;
  // The definitions of those that are no built-in kinds, for servers that ask for them.
  virtual std::vector<Json> definitions() const { return {}; }
  virtual WebhookConfigurations webhooks() const { return {}; }
  // Adds informers and controllers that work in this namespace ("": in all), as production does.
  // What is returned lives as long as the manager.
  virtual std::shared_ptr<void> install(runtime::Manager& manager, const std::string& ns) = 0;

  // ---- what happens ----
  struct Moment {
    Time now;
    bool trouble;  // until all faults are over
    bool calm;     // a schedule without faults, in which no write may be in vain
  };
  // One thing that a user or another program does now.
  virtual void disturb(Server& server, Random& random, Moment moment) = 0;
  // What the cluster's own controllers and nodes do now; also when all trouble is over. Returns
  // after how long there may be more to do; nothing: when somebody has written something.
  virtual std::optional<Duration> live(Server& /*server*/, Random& /*random*/, Moment /*moment*/) {
    return std::nullopt;
  }

  // ---- what must hold ----
  // A broken invariant in words. Called after each write of anyone.
  virtual std::optional<std::string> check_write(const Server& server, const WriteSeen& write) = 0;
  // Called now and then once all faults are over: what should have happened by now.
  virtual std::optional<std::string> check_alive(const Server& /*server*/, Time /*now*/) {
    return std::nullopt;
  }
  // Called when all faults are over: why the world is not yet as asked for, or nothing.
  virtual std::optional<std::string> check_settled(const Server& server) = 0;

  // Rare branches (base/probe.h) that no schedule of this subject can reach, each with its reason.
  struct Unreachable {
    std::string_view probe;
    std::string_view why;
  };
  virtual std::vector<Unreachable> never_reaches() const { return {}; }
};

}  // namespace grapnel::simulation
