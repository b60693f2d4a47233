// The `status` of a Pod, made from what is known of it. Pure.
#pragma once

#include <string_view>

#include "local/kubelet/decide.h"

namespace grapnel::local::kubelet {

// How far a pod has come.
struct Progress {
  bool is_initialized = false;      // all init containers have done their part
  bool will_start_nothing = false;  // being deleted, evicted, or all has ended
  bool is_over = false;             // and nothing runs any more: the status is final
  bool is_failed_init = false;      // an init container failed and is not started again
  bool is_past_deadline = false;    // spec.activeDeadlineSeconds
};
Progress progress_of(const Observed& observed, Time now);

Json status_of(const Observed& observed, const Progress& progress, Time now);

// Guaranteed, Burstable or BestEffort, from requests and limits.
std::string_view qos_class(const Pod& pod);

}  // namespace grapnel::local::kubelet
