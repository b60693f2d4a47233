// Looks after one running container: runs its postStart hook once, then its probes until it ends.
// It knows nothing of the pod except where to report what it found.
#pragma once

#include <functional>
#include <string>

#include "base/async.h"
#include "local/kubelet/handlers.h"
#include "local/kubelet/probes.h"

namespace grapnel::local::kubelet {

struct CareReport {
  enum class Kind { kStarted, kReady, kNotReady, kUnhealthy };
  Kind kind = Kind::kReady;
  std::string why;                // for a person; "" when all is well
  std::optional<Duration> grace;  // kUnhealthy: to end it in
  std::string event;              // FailedPostStartHook, Unhealthy; "": none
};

struct CareOptions {
  HandlerTarget target;
  Json container;  // its spec
  Time started_at{};
  bool is_new = true;        // false: found running by a later kubelet, its hook has been run
  bool has_started = false;  // its startup probe has succeeded already
  std::function<void(CareReport)> tell;
};
// Whether there is anything to do for a container of this spec.
bool needs_care(const Json& container);
Task<> care_for(CareOptions options);

// The preStop hook, if there is one, within `grace`; what is left of the grace.
Task<Duration> before_stop(HandlerTarget target, Json container, Duration grace);

}  // namespace grapnel::local::kubelet
