#include "runtime/applier.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/log.h"
#include "base/probe.h"

namespace grapnel::runtime {
namespace {

Probe kNotLeader("apply: no longer the leader");
Probe kWaitedForServer("apply: waited as long as the server asked");
Probe kSlowsDown("apply: fewer writes at once");

constexpr size_t kMostAppliesRemembered = 50000;
constexpr int kMostTries = 5;
constexpr size_t kGrantsForOneMore = 100;
constexpr size_t kLeast = 4;  // under way, however crowded the server is
constexpr Duration kLongestWait = seconds(5);

std::string name_of(const ObjectRef& target) {
  return fmt::format("{}/{}/{}", target.kind->group, target.kind->plural, target.key.text());
}

size_t hash_of(const Apply& apply) {
  return std::hash<std::string>()(to_text(apply.object));
}

void log_failure(const Outcome::Failed& failed) {
  log_warning("a write failed", {{"kind", failed.target.kind->kind},
                                 {"namespace", failed.target.key.ns.view()},
                                 {"name", failed.target.key.name},
                                 {"write", failed.what.substr(0, 200)},
                                 {"why", failed.error.message}});
}

// How long the server asks to wait until it takes this one. Not here if that is long: the plan was
// made for the world of before.
std::optional<Duration> wait_of(const WriteResult& result) {
  if (!result.error || !result.error->is(Reason::kTooManyRequests)) return std::nullopt;
  const auto wait = result.error->retry_after;
  return wait <= kLongestWait ? wait : std::nullopt;
}

WriteResult not_leader() {
  kNotLeader.hit();
  return {.error = Error{.reason = Reason::kCancelled, .message = "no longer the leader"}};
}

}  // namespace

Applier::Applier(Executor executor, kube::Client& client, ApplierOptions options)
    : client_(client), options_(std::move(options)), permits_(executor, options_.in_flight) {}

Task<Outcome> Applier::apply(Plan plan) {
  Outcome outcome;
  for (auto& stage : plan.stages) {
    co_await carry_out_stage(stage, outcome);
    if (!outcome.ok()) co_return outcome;
  }
  Outcome told = co_await report(std::move(plan));
  outcome.sent += told.sent;
  std::ranges::move(told.failed, std::back_inserter(outcome.failed));
  std::ranges::move(told.traces, std::back_inserter(outcome.traces));
  co_return outcome;
}

Task<Outcome> Applier::report(Plan plan) {
  Outcome outcome;
  if (plan.status) {
    const Write status = std::move(*plan.status);
    co_await carry_out_one(status, outcome);
    if (!outcome.ok()) co_return outcome;
  }
  if (options_.on_event) std::ranges::for_each(plan.events, options_.on_event);
  if (options_.on_count) std::ranges::for_each(plan.counts, options_.on_count);
  co_return outcome;
}

Task<> Applier::carry_out_stage(std::span<Write> writes, Outcome& outcome) {
  const size_t ahead = std::min(options_.ahead, writes.size());
  co_await carry_out_all(writes.first(ahead), outcome);
  if (outcome.ok()) co_await carry_out_all(writes.subspan(ahead), outcome);
}

Task<> Applier::carry_out_all(std::span<Write> writes, Outcome& outcome) {
  std::vector<Task<>> workers(std::min(options_.in_flight, writes.size()));
  for (auto& worker : workers) worker = work(writes, outcome);
  co_await all(std::move(workers));
}

Task<> Applier::work(std::span<Write>& rest, Outcome& outcome) {
  while (!rest.empty() && outcome.ok()) {
    // Taken out, it is gone when it is done: a plan may hold thousands.
    const Write write = std::move(rest.front());
    rest = rest.subspan(1);
    co_await carry_out_one(write, outcome);
  }
}

Task<> Applier::carry_out_one(const Write& write, Outcome& outcome) {
  if (changes_nothing(write) || is_applied_already(write)) co_return;
  WriteResult result = co_await send(write, outcome);
  for (int tries = 1; tries < kMostTries; ++tries) {
    const auto wait = wait_of(result);
    if (!wait) break;
    kWaitedForServer.hit();
    co_await options_.clock->sleep(*wait);
    result = co_await send(write, outcome);
  }
  if (result.trace) outcome.traces.push_back(*result.trace);
  if (result.error) {
    outcome.failed.push_back(
        {target_of(write), describe(write), std::move(*result.error), result.defect});
    log_failure(outcome.failed.back());
  } else if (result.trace) {
    remember(write, *result.trace);
  }
}

Task<WriteResult> Applier::send(const Write& write, Outcome& outcome) {
  const auto permit = co_await permits_.acquire();
  if (options_.may_write && !options_.may_write()) co_return not_leader();
  ++outcome.sent;
  WriteResult result = co_await carry_out(client_, write);
  if (wait_of(result)) slow_down();
  if (!result.error) speed_up();
  co_return result;
}

void Applier::slow_down() {
  granted_ = 0;
  // One for the place it has not got, one that it finds room when it comes again.
  for (int i = 0; i < 2 && given_up_ + kLeast < options_.in_flight; ++i) {
    kSlowsDown.hit();
    ++given_up_;
    permits_.shrink();
  }
}

void Applier::speed_up() {
  if (given_up_ == 0 || ++granted_ < kGrantsForOneMore) return;
  granted_ = 0;
  --given_up_;
  permits_.grow();
}

// The same apply as last time, to an object that nobody has touched since.
bool Applier::is_applied_already(const Write& write) const {
  const auto* apply = std::get_if<Apply>(&write);
  if (apply == nullptr || apply->uid.empty()) return false;
  const ObjectRef target = target_of(write);
  const auto last = applied_.find(name_of(target));
  if (last == applied_.end() || last->second.hash != hash_of(*apply)) return false;
  // Of several caches of the kind one may know more than another.
  kube::ResourceVersion newest = 0;
  for (const auto* cache : caches_) {
    const auto* meta = cache->kind() == *target.kind ? cache->meta(target.key) : nullptr;
    if (meta != nullptr && meta->uid == apply->uid)
      newest = std::max(newest, meta->resource_version);
  }
  return newest == last->second.version;
}

void Applier::remember(const Write& write, const Trace& trace) {
  const auto* apply = std::get_if<Apply>(&write);
  if (apply == nullptr || trace.version == 0) return;
  if (applied_.size() >= kMostAppliesRemembered) applied_.clear();
  applied_[name_of(target_of(write))] = {hash_of(*apply), trace.version};
}

}  // namespace grapnel::runtime
