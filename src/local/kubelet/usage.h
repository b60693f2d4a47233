// What running containers use of CPU and memory, read from /proc, so it works with and without
// cgroups. A container is its first process and all processes that came from it.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string_view>
#include <vector>

#include "base/async.h"

namespace grapnel::local::kubelet {

// A line of /proc/PID/stat, as far as it matters here.
struct ProcessStat {
  int pid = 0;
  int parent = 0;
  uint64_t ticks = 0;  // of CPU: its own, and those of children that have ended
  uint64_t started = 0;
  uint64_t pages = 0;  // in memory
  bool operator==(const ProcessStat&) const = default;
};
std::optional<ProcessStat> parse_process_stat(std::string_view text);

struct TreeUsage {
  uint64_t ticks = 0;
  uint64_t pages = 0;
  uint64_t started = 0;  // of the root: a number that tells it from another of the same pid
};
// Of a process and all below it; nothing when it is not there.
std::optional<TreeUsage> usage_of_tree(const std::vector<ProcessStat>& all, int root);

struct Usage {
  uint64_t nanocores = 0;
  uint64_t bytes = 0;
  Duration window{};  // that the CPU was measured over
};

class UsageSampler {
 public:
  explicit UsageSampler(Clock& clock) : clock_(clock) {}
  // By the pid of each first process; those that have ended are left out. CPU is measured since the
  // last time somebody asked, or over a moment that this waits.
  Task<std::map<int, Usage>> measure(std::vector<int> roots);

 private:
  struct Sample {
    Instant at{};
    uint64_t ticks = 0;
    uint64_t started = 0;
  };
  Clock& clock_;
  std::map<int, Sample> earlier_;
};

}  // namespace grapnel::local::kubelet
