// Probes of a running container: has it started (startup), does it still work (liveness), may it
// get traffic (readiness). The rules are pure; run_probe() applies them to one probe over time.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "base/async.h"
#include "local/kubelet/handlers.h"
#include "local/kubelet/pod.h"

namespace grapnel::local::kubelet {

enum class ProbeKind { kStartup, kLiveness, kReadiness };
std::string_view to_string(ProbeKind kind);  // "Startup" …, as events say it

struct Probe {
  ProbeKind kind = ProbeKind::kReadiness;
  Json handler;
  Duration initial_delay{};
  Duration period = seconds(10);
  Duration timeout = seconds(1);
  int64_t success_threshold = 1;
  int64_t failure_threshold = 3;
  std::optional<Duration> grace;  // to end what liveness found dead
};
std::optional<Probe> probe_of(const Container& container, ProbeKind kind);

// Counts results of one kind in a row.
class ProbeCounter {
 public:
  // Whether the verdict is now known, and which it is.
  std::optional<bool> add(const Probe& probe, bool is_success);

 private:
  bool last_ = false;
  int64_t in_a_row_ = 0;
};

struct ProbeRun {
  Probe probe;
  HandlerTarget target;
  Duration age{};  // of the container when probing begins
  // Called with each result that is reached; false ends the probing.
  std::function<bool(bool is_success, const std::string& why)> on_verdict;
};
Task<> run_probe(ProbeRun run);

}  // namespace grapnel::local::kubelet
