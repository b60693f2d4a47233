#include "local/kubelet/care.h"

#include <algorithm>

#include "base/log.h"

namespace grapnel::local::kubelet {
namespace {

constexpr Duration kHookTimeout = hours(24);  // Kubernetes sets none
constexpr Duration kLeastGrace = seconds(2);

ProbeRun probe_run(const CareOptions& options, Probe probe,
                   std::function<bool(bool, const std::string&)> on_verdict) {
  const Duration age = options.target.clock->now() - options.started_at;
  return {.probe = std::move(probe),
          .target = options.target,
          .age = std::max(age, Duration::zero()),
          .on_verdict = std::move(on_verdict)};
}

CareReport unhealthy(const Probe& probe, const std::string& why) {
  return {.kind = CareReport::Kind::kUnhealthy,
          .why = fmt::format("{} probe failed: {}", to_string(probe.kind), why),
          .grace = probe.grace,
          .event = "Unhealthy"};
}

Task<bool> wait_for_startup(CareOptions options, Probe probe) {
  const auto has_started = std::make_shared<bool>(false);
  const auto tell = options.tell;
  co_await run_probe(probe_run(options, probe, [=](bool is_success, const std::string& why) {
    *has_started = is_success;
    tell(is_success ? CareReport{.kind = CareReport::Kind::kStarted} : unhealthy(probe, why));
    return false;
  }));
  co_return *has_started;
}

Task<> watch_liveness(CareOptions options, Probe probe) {
  const auto tell = options.tell;
  return run_probe(probe_run(options, probe, [=](bool is_success, const std::string& why) {
    if (!is_success) tell(unhealthy(probe, why));
    return is_success;
  }));
}

Task<> watch_readiness(CareOptions options, Probe probe) {
  const auto tell = options.tell;
  return run_probe(probe_run(options, probe, [=](bool is_success, const std::string& why) {
    if (is_success) {
      tell({.kind = CareReport::Kind::kReady});
    } else {
      tell({.kind = CareReport::Kind::kNotReady,
            .why = "Readiness probe failed: " + why,
            .event = "Unhealthy"});
    }
    return true;
  }));
}

}  // namespace

bool needs_care(const Json& container) {
  return at(container, "lifecycle", "postStart") != nullptr ||
         find(container, "startupProbe") != nullptr ||
         find(container, "livenessProbe") != nullptr ||
         find(container, "readinessProbe") != nullptr;
}

Task<> care_for(CareOptions options) {
  const Container container{.spec = &options.container};
  const Json* hook = at(options.container, "lifecycle", "postStart");
  if (hook != nullptr && options.is_new) {
    auto done = co_await perform(options.target, *hook, kHookTimeout);
    if (!done) {
      options.tell({.kind = CareReport::Kind::kUnhealthy,
                    .why = "PostStartHookError: " + done.error().message,
                    .event = "FailedPostStartHook"});
      co_return;
    }
  }
  if (const auto startup = probe_of(container, ProbeKind::kStartup);
      startup && !options.has_started) {
    if (!co_await wait_for_startup(options, *startup)) co_return;
  }
  std::vector<Task<>> watching;
  if (const auto liveness = probe_of(container, ProbeKind::kLiveness)) {
    watching.push_back(watch_liveness(options, *liveness));
  }
  if (const auto readiness = probe_of(container, ProbeKind::kReadiness)) {
    watching.push_back(watch_readiness(options, *readiness));
  }
  co_await all(std::move(watching));
}

Task<Duration> before_stop(HandlerTarget target, Json container, Duration grace) {
  const Json* hook = at(container, "lifecycle", "preStop");
  if (hook == nullptr) co_return grace;
  Clock& clock = *target.clock;
  const Instant begun = clock.instant();
  const std::string name = target.like.container;
  auto done = co_await perform(std::move(target), *hook, grace);
  if (!done) {
    log_warning("a preStop hook failed", {{"container", name}, {"why", done.error().message}});
  }
  co_return std::max<Duration>(grace - (clock.instant() - begun), kLeastGrace);
}

}  // namespace grapnel::local::kubelet
