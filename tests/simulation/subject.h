// What is simulated: some controllers, what users and the cluster do to their objects, and what
// must hold whatever happens. Subjects live beside the controllers they prove.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/random.h"
#include "runtime/manager.h"
#include "tests/simulation/model.h"

namespace grapnel::simulation {

class Subject {
 public:
  virtual ~Subject() = default;

  virtual std::vector<ModelKind> kinds() const = 0;
  // Adds informers and controllers. What is returned lives as long as the manager.
  virtual std::shared_ptr<void> install(runtime::Manager& manager) = 0;
  // One thing that a user or another program does now.
  virtual void disturb(ApiModel& model, Random& random) = 0;

  // What the cluster's own controllers and nodes do now; also when all trouble is over.
  virtual void live(ApiModel& /*model*/, Random& /*random*/, bool /*trouble*/) {}

  // A broken invariant in words. Called after each write of anyone.
  virtual std::optional<std::string> check_write(const ApiModel& model, const WriteSeen& write) = 0;
  // Called when all faults are over: why the world is not yet as asked for, or nothing.
  virtual std::optional<std::string> check_settled(const ApiModel& model) = 0;
};

}  // namespace grapnel::simulation
