// grapnel logs: what the processes of an experiment wrote, together.
#include <algorithm>
#include <iterator>
#include <set>

#include "cli/commands.h"
#include "cli/experiment.h"
#include "cli/follower.h"
#include "cli/loop.h"
#include "cli/manifest.h"
#include "cli/merged_logs.h"
#include "cli/target.h"
#include "kube/kind.h"

namespace grapnel::cli {
namespace {

struct Wish {
  LogFilter filter;
  kube::LogOptions logs;
};

Result<Wish> wish_of(const LogsOptions& options) {
  Wish wish{.filter = {.processes = {.role = options.role, .rank = options.rank}},
            .logs = {.previous = options.previous, .tail_lines = options.tail}};
  if (!options.since.empty()) {
    wish.logs.since = parse_go_duration(options.since);
    if (!wish.logs.since || *wish.logs.since <= Duration{0}) {
      return fail(Reason::kUsage, "--since: '{}' is no length of time such as 30s, 5m or 2h",
                  options.since);
    }
  }
  if (!options.grep.empty()) {
    auto pattern = Pattern::compile(options.grep);
    if (!pattern) return fail(Reason::kUsage, "--grep: {}", pattern.error().message);
    wish.filter.pattern = std::move(*pattern);
  }
  return wish;
}

Task<int> print_merged(kube::Client& client, std::vector<api::Pod> pods, Wish wish,
                       LogPrinter& printer) {
  MergedLogs merged;
  wish.logs.timestamps = true;
  for (const api::Pod& pod : pods) {
    const auto process = process_of(pod);
    auto stream =
        co_await client.logs({.ns = pod.meta.key.ns.str(), .name = pod.meta.name()}, wish.logs);
    if (stream) {
      merged.add(process, std::move(*stream));
    } else {
      printer.note(fmt::format("no logs of {}: {}", process.name, stream.error().message));
    }
  }
  for (;;) {
    const auto line = co_await merged.next();
    if (!line) co_return report(line.error(), kFailed);
    if (!*line) co_return kOk;
    const auto& [source, text] = **line;
    if (wish.filter.takes_line(text)) printer.line(source.name, source.rank, text);
  }
}

Task<int> print(Executor executor, LogsOptions options, Wish wish) {
  auto to = connect_to(executor, options.target);
  if (!to) co_return report(to.error(), kUsage);
  auto printer = LogPrinter::of_process();
  const kube::Key key{Interned(to->ns), options.name};
  const auto found = co_await get_experiment(*to->client, key);
  if (!found) co_return report(found.error(), kFailed);
  auto pods = co_await find_logged_processes(*to->client, key, wish.filter.processes);
  if (!pods) co_return report(pods.error(), kFailed);
  if (!options.follow || found->status.end_time) {
    std::ranges::move(pods->there, std::back_inserter(pods->gone));
    if (pods->gone.empty()) printer.note("none of its processes has started");
    co_return co_await print_merged(*to->client, std::move(pods->gone), wish, printer);
  }
  std::set<std::string> printed;
  for (const auto& pod : pods->gone) printed.insert(std::string(pod.meta.uid.text()));
  if (!pods->gone.empty()) {
    const int code = co_await print_merged(*to->client, std::move(pods->gone), wish, printer);
    if (code != kOk) co_return code;
  }
  Follower follower(executor, *to->client, system_clock(), key,
                    {.filter = wish.filter,
                     .logs = wish.logs,
                     .printed = std::move(printed),
                     .cluster = to->cluster},
                    printer);
  const auto followed = co_await follower.run();
  co_return followed ? kOk : report(followed.error(), kFailed);
}

}  // namespace

int logs(const LogsOptions& options) {
  auto wish = wish_of(options);
  if (!wish) return report(wish.error(), kUsage);
  return run_loop([&](Executor executor) { return print(executor, options, *wish); });
}

}  // namespace grapnel::cli
