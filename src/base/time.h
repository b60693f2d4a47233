// Points in time and lengths of it, and their texts: RFC 3339 as Kubernetes writes it, Go's
// "1h30m", the manifest's "1w 2d 5h 6m 20s".
#pragma once

#include <chrono>
#include <compare>
#include <optional>
#include <string>
#include <string_view>

namespace grapnel {

using Duration = std::chrono::microseconds;
// A point on the wall clock. Planners get one as an argument and never ask for it.
using Time = std::chrono::sys_time<Duration>;
// A point on the monotonic clock: deadlines are measured on this one.
using Instant = std::chrono::time_point<std::chrono::steady_clock, Duration>;

using std::chrono::duration_cast;
using std::chrono::hours;
using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;

// "2026-11-15T08:26:26Z": metav1.Time, whole seconds.
std::string format_time(Time time);
// "2026-11-15T08:26:26.123456Z": metav1.MicroTime, always six decimals.
std::string format_micro_time(Time time);
// Any RFC 3339 time, with or without a fraction, with Z or an offset.
std::optional<Time> parse_time(std::string_view text);

// Go's notation, as in flags and probes: "300ms", "1h30m", "1.5s", "-2m".
std::optional<Duration> parse_go_duration(std::string_view text);

// The manifest's notation: "1w 2d 5h 6m 20s", any non-empty subset in that order, each unit once.
std::optional<Duration> parse_manifest_duration(std::string_view text);

// As kubectl shows ages: "5s", "3m12s", "4h5m", "2d3h", "40d".
std::string format_age(Duration age);

}  // namespace grapnel
