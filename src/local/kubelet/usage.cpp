#include "local/kubelet/usage.h"

#include <dirent.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <string>

#include "base/files.h"
#include "base/strings.h"

namespace grapnel::local::kubelet {
namespace {

constexpr Duration kShortest = milliseconds(500);  // to tell a rate by
constexpr Duration kLongest = seconds(30);         // older samples say nothing of now
constexpr Duration kEnough = seconds(5);

template <class T>
bool read_number(std::string_view text, T& out) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
  return error == std::errc() && end == text.data() + text.size();
}

std::vector<ProcessStat> all_processes() {
  std::vector<ProcessStat> all;
  DIR* opened = opendir("/proc");
  if (opened == nullptr) return all;
  while (const dirent* entry = readdir(opened)) {
    if (entry->d_name[0] < '0' || entry->d_name[0] > '9') continue;
    const auto text = read_file(std::string("/proc/") + entry->d_name + "/stat");
    if (!text) continue;  // it has ended
    if (const auto stat = parse_process_stat(*text)) all.push_back(*stat);
  }
  closedir(opened);
  return all;
}

}  // namespace

std::optional<ProcessStat> parse_process_stat(std::string_view text) {
  // "12 (a name) with) brackets) S 1 …": the name ends at the last bracket.
  const auto open = text.find(" (");
  const auto close = text.rfind(") ");
  if (open == std::string_view::npos || close == std::string_view::npos || close < open) {
    return std::nullopt;
  }
  ProcessStat stat;
  const auto fields = split(trim(text.substr(close + 2)), ' ');
  constexpr size_t kParent = 1;
  constexpr size_t kFirstTicks = 11;  // user, system, children's user, children's system
  constexpr size_t kStarted = 19;
  constexpr size_t kPages = 21;
  if (fields.size() <= kPages || !read_number(text.substr(0, open), stat.pid) ||
      !read_number(fields[kParent], stat.parent) || !read_number(fields[kStarted], stat.started)) {
    return std::nullopt;
  }
  for (size_t i = kFirstTicks; i < kFirstTicks + 4; ++i) {
    uint64_t ticks = 0;
    if (!read_number(fields[i], ticks)) return std::nullopt;
    stat.ticks += ticks;
  }
  if (!read_number(fields[kPages], stat.pages)) return std::nullopt;
  return stat;
}

std::optional<TreeUsage> usage_of_tree(const std::vector<ProcessStat>& all, int root) {
  std::multimap<int, const ProcessStat*> by_parent;
  const ProcessStat* first = nullptr;
  for (const ProcessStat& stat : all) {
    by_parent.emplace(stat.parent, &stat);
    if (stat.pid == root) first = &stat;
  }
  if (first == nullptr) return std::nullopt;
  TreeUsage sum{.started = first->started};
  // The list is read while processes come and go, so it may not be a proper tree.
  std::vector<const ProcessStat*> left{first};
  for (size_t seen = 0; !left.empty() && seen < all.size(); ++seen) {
    const ProcessStat& stat = *left.back();
    left.pop_back();
    sum.ticks += stat.ticks;
    sum.pages += stat.pages;
    const auto [begin, end] = by_parent.equal_range(stat.pid);
    for (auto it = begin; it != end; ++it) left.push_back(it->second);
  }
  return sum;
}

Task<std::map<int, Usage>> UsageSampler::measure(std::vector<int> roots) {
  const Instant asked = clock_.instant();
  Instant begin = asked;
  std::erase_if(earlier_, [&](const auto& sample) { return asked - sample.second.at > kLongest; });
  auto all = all_processes();
  for (const int root : roots) {
    const auto now = usage_of_tree(all, root);
    if (!now) continue;
    const auto known = earlier_.find(root);
    if (known == earlier_.end() || known->second.started != now->started) {
      earlier_[root] = {asked, now->ticks, now->started};
    }
    begin = std::max(begin, earlier_[root].at + kShortest);
  }
  if (begin > asked) {
    co_await clock_.sleep_until(begin);
    all = all_processes();
  }
  static const auto page = static_cast<uint64_t>(::sysconf(_SC_PAGESIZE));
  static const double nanos_per_tick = 1e9 / static_cast<double>(::sysconf(_SC_CLK_TCK));
  const Instant at = clock_.instant();
  std::map<int, Usage> out;
  for (const int root : roots) {
    const auto now = usage_of_tree(all, root);
    const auto known = earlier_.find(root);
    if (!now || known == earlier_.end() || known->second.started != now->started) continue;
    const Duration window = at - known->second.at;
    const double seconds_long = std::chrono::duration<double>(window).count();
    if (seconds_long <= 0) continue;
    // A child that ended unseen by its parent takes its ticks with it.
    const uint64_t ticks = now->ticks - std::min(now->ticks, known->second.ticks);
    out[root] = {.nanocores = static_cast<uint64_t>(static_cast<double>(ticks) * nanos_per_tick /
                                                    seconds_long),
                 .bytes = now->pages * page,
                 .window = window};
    if (window >= kEnough) known->second = {at, now->ticks, now->started};
  }
  co_return out;
}

}  // namespace grapnel::local::kubelet
