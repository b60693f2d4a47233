#include "runtime/controller.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/log.h"
#include "base/probe.h"

namespace grapnel::runtime {
namespace {

Probe kDefective("controller: a planner threw");
Probe kRested("controller: a key rests");
Probe kAsksAgain("controller: what an unclear write did is asked again");
Probe kStillUnclear("controller: and is still not answered");
Probe kUnclearFound("controller: an unclear write had arrived");
Probe kUnclearGone("controller: an unclear write left nothing there");
Probe kWaits("controller: waits until its own writes are seen");
Probe kDoubtsConnection("controller: doubts a watch's connection");
Probe kDoubtsContents("controller: doubts a cache's contents");
Probe kRefused("controller: a plan was refused");
Probe kConflicts("controller: a plan met a conflict");
Probe kRetries("controller: a plan failed otherwise");

constexpr Duration kAfterRefusal = seconds(1);  // doubled each time
constexpr int kMostDoublings = 9;

std::string_view event_reason(std::string_view what) {
  if (what.starts_with("create")) return "FailedCreate";
  if (what.starts_with("delete")) return "FailedDelete";
  return "FailedUpdate";
}

// The one that decides what becomes of the key: a refusal before all others, since only it needs to
// be told; then what the planner itself could not do.
const Outcome::Failed& decisive(const Outcome& outcome) {
  const auto& all = outcome.failed;
  auto found = std::ranges::find_if(all, [](const auto& f) { return is_refusal(f.error); });
  if (found == all.end()) found = std::ranges::find_if(all, &Outcome::Failed::defect);
  return found == all.end() ? all.front() : *found;
}

bool cache_has_seen(const CacheBase& cache, const Trace& trace, Instant since) {
  if (cache.complete_as_of() > since) return true;
  const kube::Meta* meta = cache.meta(trace.key);
  if (!trace.deleted.empty()) {
    return meta == nullptr || meta->uid != trace.deleted || meta->is_being_deleted();
  }
  // Versions that are no numbers cannot be compared; then nothing is waited for.
  if (trace.version == 0 || cache.last_version() == 0) return true;
  return cache.last_version() >= trace.version ||
         (meta != nullptr && meta->resource_version >= trace.version);
}

Duration longest_retry_after(const Outcome& outcome) {
  Duration longest{};
  for (const auto& failed : outcome.failed) {
    longest = std::max(longest, failed.error.retry_after.value_or(Duration::zero()));
  }
  return longest;
}

}  // namespace

Controller::Controller(ControllerOptions options, Queue& queue, Applier& applier, Clock& clock)
    : options_(std::move(options)),
      queue_(queue),
      applier_(applier),
      clock_(clock),
      lane_(queue.add_lane(options_.name, options_.at_once)) {}

void Controller::use(CacheBase& cache, Need need) {
  const auto known = std::ranges::find(uses_, &cache, &Used::cache);
  if (known != uses_.end()) {
    if (need == Need::kAlways) known->need = need;
    return;
  }
  uses_.push_back({&cache, need});
  cache.on_advance([this] { wake_parked(); });
}

void Controller::enqueue(const kube::Key& key, Queue::Priority priority) {
  queue_.add(lane_, key, priority);
}

Task<> Controller::process(kube::Key key) {
  const Instant start = clock_.instant();
  const End end = co_await turn(key);
  if (observer_ != nullptr) observer_->planned(name(), end, clock_.instant() - start);
}

Task<Controller::End> Controller::turn(const kube::Key& key) {
  if (must_rest(key)) co_return End::kWaiting;
  if (const auto clear = co_await clear_up(key); !clear) {
    queue_.retry(lane_, key, clear.error().retry_after.value_or(Duration::zero()));
    co_return End::kError;
  }
  if (must_wait(key)) co_return End::kWaiting;
  auto plan = ask_planner(key, nullptr);
  if (!plan) {
    kDefective.hit();
    queue_.retry(lane_, key, kAfterRefusal);
    co_return End::kDefect;
  }
  if (!*plan) {
    queue_.forget(lane_, key);
    resting_.erase(key);
    told_.erase(key);
    if (external_ != nullptr) external_->forget(lane_, key);
    co_return End::kSuccess;
  }
  if (counts_too_often(key, **plan)) co_return End::kWaiting;
  ask(key, **plan);
  auto calls = std::move((*plan)->calls);
  const auto look_again = (*plan)->look_again;
  const bool is_paced = (*plan)->between_counts > Duration::zero();
  if (is_paced && (*plan)->status) told_[key] = clock_.instant();
  const Outcome outcome = co_await applier_.apply(std::move(**plan));
  look_for(key, outcome.traces);
  if (!outcome.ok()) co_return co_await handle_failure(key, outcome);
  make(key, std::move(calls));
  queue_.forget(lane_, key);
  if (!look_again) co_return End::kSuccess;
  queue_.add_after(lane_, key, *look_again);
  co_return End::kLookAgain;
}

// One object that a planner cannot bear must not take all the others down with it.
Result<std::optional<Plan>> Controller::ask_planner(const kube::Key& key, const Refusal* refused) {
  const Instant start = clock_.instant();
  try {
    auto plan = options_.plan(key, clock_.now(), refused);
    const Instant end = clock_.instant();
    const Duration rest = std::min((end - start) * options_.rest_factor, options_.longest_rest);
    if (rest > Duration::zero()) resting_[key] = end + rest;
    return plan;
  } catch (const std::exception& e) {
    report_defect(key, e.what());
    return fail(Reason::kUnknown, "{}", e.what());
  }
}

void Controller::report_defect(const kube::Key& key, std::string_view what) const {
  log_error("a planner failed", {{"controller", name()},
                                 {"kind", kind().kind},
                                 {"namespace", key.ns.view()},
                                 {"name", key.name},
                                 {"what", what}});
}

bool Controller::must_rest(const kube::Key& key) {
  const auto found = resting_.find(key);
  if (found == resting_.end()) return false;
  const Duration left = found->second - clock_.instant();
  if (left > Duration::zero()) {
    kRested.hit();
    queue_.add_after(lane_, key, left);
    return true;
  }
  resting_.erase(found);
  return false;
}

bool Controller::counts_too_often(const kube::Key& key, const Plan& plan) {
  const bool comes_alone = std::ranges::all_of(plan.stages, &std::vector<Write>::empty) &&
                           plan.calls.empty() && plan.events.empty() && plan.counts.empty();
  if (!plan.status || !comes_alone) return false;
  const auto last = told_.find(key);
  if (last == told_.end()) return false;
  const Duration left = last->second + plan.between_counts - clock_.instant();
  if (left <= Duration::zero()) return false;
  queue_.add_after(lane_, key, left);
  return true;
}

// ---- reading our own writes ---------------------------------------------------------------------

// What became of writes that were not answered, as far as that is still open.
Task<Result<>> Controller::clear_up(const kube::Key& key) {
  std::vector<Trace> unclear;
  if (const auto found = unseen_.find(key); found != unseen_.end()) {
    std::ranges::copy_if(found->second.traces, std::back_inserter(unclear), &Trace::unclear);
  }
  for (const Trace& trace : unclear) {
    kAsksAgain.hit();
    const auto seen = co_await applier_.look(trace);
    if (!seen) {
      kStillUnclear.hit();
      co_return fail(seen.error());
    }
    (*seen ? kUnclearFound : kUnclearGone).hit();
    Unseen& unseen = unseen_[key];
    std::erase_if(unseen.traces, [&](const Trace& other) {
      return other.unclear && *other.kind == *trace.kind && other.key == trace.key;
    });
    if (*seen) look_for(key, {**seen});
  }
  co_return Result<>();
}

bool Controller::must_wait(const kube::Key& key) {
  const auto found = unseen_.find(key);
  if (found == unseen_.end()) return false;
  Unseen& unseen = found->second;
  forget_seen(unseen);
  if (unseen.traces.empty()) {
    unseen_.erase(found);
    return false;
  }
  kWaits.hit();
  const Duration waited = clock_.instant() - unseen.since;
  if (waited >= options_.patience) {
    const bool too_long = waited >= options_.longest_patience;
    (too_long ? kDoubtsContents : kDoubtsConnection).hit();
    for (const Trace& trace : unseen.traces) {
      for (const Used& used : uses_) {
        if (used.cache->kind() != *trace.kind || cache_has_seen(*used.cache, trace, unseen.since)) {
          continue;
        }
        used.cache->doubt(too_long ? CacheBase::Doubt::kContents : CacheBase::Doubt::kConnection);
      }
    }
  }
  parked_.insert(key);
  queue_.add_after(lane_, key, std::max(options_.patience - waited, options_.patience / 4));
  return true;
}

// What a planner reads of a kind, it may read in any of its caches: all must have seen it.
bool Controller::has_seen(const Trace& trace, Instant since) const {
  if (trace.unclear) return false;
  return std::ranges::all_of(uses_, [&](const Used& used) {
    return used.cache->kind() != *trace.kind || cache_has_seen(*used.cache, trace, since);
  });
}

// From the back, up to one that was not seen: with thousands under way this is asked at every
// event.
void Controller::forget_seen(Unseen& unseen) const {
  auto& traces = unseen.traces;
  while (!traces.empty() && has_seen(traces.back(), unseen.since)) traces.pop_back();
}

void Controller::look_for(const kube::Key& key, const std::vector<Trace>& traces) {
  const Instant now = clock_.instant();
  for (const Trace& trace : traces) {
    if (has_seen(trace, now)) continue;
    Unseen& unseen = unseen_[key];
    unseen.traces.push_back(trace);
    unseen.since = now;
  }
}

void Controller::wake_parked() {
  for (auto i = parked_.begin(); i != parked_.end();) {
    const auto found = unseen_.find(*i);
    if (found != unseen_.end()) forget_seen(found->second);
    if (found != unseen_.end() && !found->second.traces.empty()) {
      ++i;
    } else {
      enqueue(*i);
      i = parked_.erase(i);
    }
  }
}

// ---- what lies outside the API ------------------------------------------------------------------

const External& Controller::external(const kube::Key& key) const {
  static const External nothing;
  const auto object = object_of(key);
  if (external_ == nullptr || !object) return nothing;
  return external_->known(lane_, key, object->uid);
}

void Controller::ask(const kube::Key& key, Plan& plan) {
  const auto object = object_of(key);
  if (external_ == nullptr || !object) return;
  external_->ask(lane_, key, object->uid, std::move(plan.questions));
}

void Controller::make(const kube::Key& key, std::vector<Call> calls) {
  const auto object = object_of(key);
  if (external_ == nullptr || !object) return;
  external_->make(lane_, key, object->uid, std::move(calls));
}

// ---- failures -----------------------------------------------------------------------------------

Task<Controller::End> Controller::handle_failure(const kube::Key& key, const Outcome& outcome) {
  const Outcome::Failed& failed = decisive(outcome);
  if (is_refusal(failed.error)) {
    kRefused.hit();
    co_await report_refusal(key, failed);
    const int doublings = std::min(queue_.failures(lane_, key), kMostDoublings);
    queue_.retry(lane_, key,
                 std::max(kAfterRefusal * (1 << doublings), longest_retry_after(outcome)));
    co_return End::kRefused;
  }
  if (failed.defect) {
    report_defect(key, failed.error.message);
    queue_.retry(lane_, key, kAfterRefusal);
    co_return End::kDefect;
  }
  (failed.error.is(Reason::kConflict) ? kConflicts : kRetries).hit();
  queue_.retry(lane_, key, longest_retry_after(outcome));
  co_return End::kError;
}

Task<> Controller::report_refusal(const kube::Key& key, const Outcome::Failed& failed) {
  const Refusal refusal{.what = failed.what, .error = failed.error};
  auto plan = ask_planner(key, &refusal);
  const bool told = plan && *plan && !(*plan)->events.empty();
  if (plan && *plan) {
    const Outcome outcome = co_await applier_.report(std::move(**plan));
    look_for(key, outcome.traces);
  }
  const auto object = object_of(key);
  if (told || !object || !on_event_) co_return;
  on_event_({.regarding = *object,
             .type = Event::Type::kWarning,
             .reason = std::string(event_reason(failed.what)),
             .action = "Reconciling",
             .message = fmt::format("{}: {}", failed.what, failed.error.message)});
}

std::optional<ObjectRef> Controller::object_of(const kube::Key& key) const {
  for (const Used& used : uses_) {
    const kube::Meta* meta = used.cache->kind() == kind() ? used.cache->meta(key) : nullptr;
    if (meta != nullptr) return ObjectRef{options_.kind, key, meta->uid};
  }
  return std::nullopt;
}

std::optional<kube::Key> controller_key(const kube::Meta& meta, const kube::Kind& kind) {
  const auto* owner = meta.controller();
  if (owner == nullptr || owner->kind.view() != kind.kind) return std::nullopt;
  const std::string_view version = owner->api_version;
  const auto slash = version.find('/');
  const auto group = slash == std::string_view::npos ? "" : version.substr(0, slash);
  if (group != kind.group) return std::nullopt;
  return kube::Key{kind.namespaced ? meta.key.ns : Interned(), owner->name};
}

}  // namespace grapnel::runtime
