#include "local/kubelet/probes.h"

#include <algorithm>

#include "base/log.h"

namespace grapnel::local::kubelet {
namespace {

std::string_view field_of(ProbeKind kind) {
  switch (kind) {
    case ProbeKind::kStartup:
      return "startupProbe";
    case ProbeKind::kLiveness:
      return "livenessProbe";
    case ProbeKind::kReadiness:
      return "readinessProbe";
  }
  return "";
}

}  // namespace

std::string_view to_string(ProbeKind kind) {
  switch (kind) {
    case ProbeKind::kStartup:
      return "Startup";
    case ProbeKind::kLiveness:
      return "Liveness";
    case ProbeKind::kReadiness:
      return "Readiness";
  }
  return "";
}

std::optional<Probe> probe_of(const Container& container, ProbeKind kind) {
  const Json* spec = find(*container.spec, field_of(kind));
  if (spec == nullptr || !spec->is_object()) return std::nullopt;
  const auto number = [&](std::string_view name, int64_t fallback, int64_t least) {
    return std::max(int_or(find(*spec, name), fallback), least);
  };
  Probe out{.kind = kind,
            .handler = *spec,
            .initial_delay = seconds(number("initialDelaySeconds", 0, 0)),
            .period = seconds(number("periodSeconds", 10, 1)),
            .timeout = seconds(number("timeoutSeconds", 1, 1)),
            .success_threshold = number("successThreshold", 1, 1),
            .failure_threshold = number("failureThreshold", 3, 1)};
  if (const Json* grace = find(*spec, "terminationGracePeriodSeconds")) {
    out.grace = seconds(int_or(grace));
  }
  return out;
}

std::optional<bool> ProbeCounter::add(const Probe& probe, bool is_success) {
  in_a_row_ = is_success == last_ ? in_a_row_ + 1 : 1;
  last_ = is_success;
  const int64_t needed = is_success ? probe.success_threshold : probe.failure_threshold;
  if (in_a_row_ < needed) return std::nullopt;
  return is_success;
}

Task<> run_probe(ProbeRun run) {
  Clock& clock = *run.target.clock;
  if (run.age < run.probe.initial_delay) co_await clock.sleep(run.probe.initial_delay - run.age);
  ProbeCounter counter;
  for (;;) {
    const Instant next = clock.instant() + run.probe.period;
    auto done = co_await perform(run.target, run.probe.handler, run.probe.timeout);
    const std::string why = done ? "" : done.error().message;
    if (!done) {
      log_debug("a probe failed", {{"probe", to_string(run.probe.kind)},
                                   {"container", run.target.like.container},
                                   {"why", why}});
    }
    if (const auto verdict = counter.add(run.probe, done.has_value())) {
      if (!run.on_verdict(*verdict, why)) co_return;
    }
    co_await clock.sleep_until(next);
  }
}

}  // namespace grapnel::local::kubelet
