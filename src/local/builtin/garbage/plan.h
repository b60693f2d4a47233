// Garbage collection by owner: deletes what belongs to something that is gone.
#pragma once

#include <vector>

#include "kube/kind.h"
#include "local/builtin/objects/all_objects.h"
#include "runtime/plan.h"

namespace grapnel::local {

enum class OwnerState {
  kPresent,
  kAbsent,
  kUnknown,  // our view of its kind is older than the object: it may exist
  kWaiting,  // being deleted in the foreground: waits for what it owns
};

struct GarbageObserved {
  const kube::Kind* kind = nullptr;
  const AnyObject& object;
  std::vector<OwnerState> owners;  // one for each of its owners
  struct Dependent {
    const kube::Kind* kind = nullptr;
    const AnyObject* object = nullptr;
  };
  std::vector<Dependent> dependents;  // all that name this object as an owner
};

runtime::Plan plan(const GarbageObserved& observed);

}  // namespace grapnel::local
