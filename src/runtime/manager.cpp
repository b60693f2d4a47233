#include "runtime/manager.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/log.h"
#include "base/memory.h"
#include "base/pass_turn.h"
#include "base/probe.h"

namespace grapnel::runtime {
namespace {

Probe kDoubtsAll("manager: a new leader doubts its caches");
Probe kCutOff("manager: work is cut off as the lease is lost");

constexpr Duration kLastEvents = seconds(2);
// How long a cache may take to show that it is up to date before it is read again.
constexpr Duration kCatchUp = milliseconds(500);

// A Signal has no memory, so what is waited for is checked right before each wait, in one Task.
Task<> wait_while(Signal& signal, std::function<bool()> waiting) {
  while (waiting()) co_await signal.wait();
}

}  // namespace

Manager::Manager(Executor executor, kube::Client& client, Clock& clock, Random& random,
                 ManagerOptions options)
    : executor_(executor),
      client_(client),
      clock_(clock),
      random_(random),
      options_(std::move(options)),
      queue_(clock, random, options_.queue),
      lease_(options_.lease ? std::make_unique<Lease>(client, clock, random, *options_.lease)
                            : nullptr),
      events_(options_.events
                  ? std::make_unique<EventRecorder>(executor, client, clock, *options_.events)
                  : nullptr),
      applier_(executor, client, applier_options()),
      external_(executor, clock, random, external_options()),
      changed_(executor),
      ready_(executor) {
  queue_.on_ready([this] { poke(); });
  external_.on_change([this](size_t lane, const kube::Key& key) { queue_.add(lane, key); });
  if (lease_) {
    lease_->on_change([this](bool leading) {
      lease_lost_ = !leading;
      changed_.notify_all();
    });
  }
}

Manager::~Manager() = default;

ApplierOptions Manager::applier_options() const {
  ApplierOptions out = options_.applier;
  out.clock = &clock_;
  if (lease_) out.may_write = [lease = lease_.get()] { return lease->leading(); };
  if (!out.on_event && events_) {
    out.on_event = [events = events_.get()](const Event& event) { events->record(event); };
  }
  return out;
}

ExternalOptions Manager::external_options() const {
  ExternalOptions out = options_.external;
  if (lease_) out.may_call = [lease = lease_.get()] { return lease->leading(); };
  return out;
}

void Manager::adopt(std::unique_ptr<InformerBase> informer) {
  informer->on_synced([this] { changed_.notify_all(); });
  informer->base_cache().on_advance([this] {
    if (!working_) changed_.notify_all();
  });
  applier_.use(informer->base_cache());
  informers_.push_back(std::move(informer));
}

Controller& Manager::add_controller(ControllerOptions options) {
  controllers_.push_back(
      std::make_unique<Controller>(std::move(options), queue_, applier_, clock_));
  controllers_.back()->use(external_);
  controllers_.back()->on_event(applier_options().on_event);
  return *controllers_.back();
}

void Manager::stop() {
  stopping_ = true;
  changed_.notify_all();
}

void Manager::poke() {
  poked_ = true;
  ready_.notify_all();
}

bool Manager::synced() const {
  return std::ranges::all_of(informers_, [](const auto& informer) { return informer->synced(); });
}

std::vector<std::pair<std::string, std::string>> Manager::unready() const {
  std::vector<std::pair<std::string, std::string>> out;
  for (const auto& informer : informers_) {
    if (informer->synced()) continue;
    out.emplace_back(fmt::format("{} ({})", informer->kind().kind, informer->kind().api_version()),
                     informer->trouble() ? informer->trouble()->message : "still listing");
  }
  return out;
}

void Manager::add_checks(Health& health) const {
  health.add_ready("caches", [this]() -> std::optional<std::string> {
    const auto waiting = unready();
    if (waiting.empty()) return std::nullopt;
    return fmt::format("{}: {}", waiting.front().first, waiting.front().second);
  });
}

Task<Result<>> Manager::run() {
  for (const auto& informer : informers_) background_.push_back(spawn(executor_, informer->run()));
  if (events_) background_.push_back(spawn(executor_, events_->run()));
  Result<> ended = co_await wait_for_caches();
  if (ended && !stopping_) ended = co_await lead();
  co_await stop_background();
  if (events_) co_await events_->flush(kLastEvents);
  if (lease_) co_await lease_->release();
  co_return ended;
}

Task<Result<>> Manager::wait_for_caches() {
  const Instant deadline = clock_.instant() + options_.sync_timeout;
  const bool in_time = co_await with_deadline(
      clock_, deadline, wait_while(changed_, [this] { return !stopping_ && !synced(); }));
  if (in_time) co_return Result<>();
  std::string kinds;
  for (const auto& [kind, why] : unready()) {
    kinds += fmt::format("{}{}: {}", kinds.empty() ? "" : "; ", kind, why);
  }
  co_return fail(Reason::kTimeout, "caches did not sync in time: {}", kinds);
}

// From here to the end we are, or wait to be, the one that works.
Task<Result<>> Manager::lead() {
  Spawned election;
  if (lease_) election = spawn(executor_, lease_->run());
  co_await wait_while(
      changed_, [this] { return !stopping_ && lease_ && !lease_->leading() && !lease_lost_; });

  if (lease_) co_await catch_up();
  Spawned dispatcher;
  if (!stopping_ && (!lease_ || lease_->leading())) {
    working_ = true;
    dispatcher = spawn(executor_, dispatch());
  }
  co_await wait_while(changed_, [this] { return !stopping_ && !lease_lost_; });

  working_ = false;
  dispatcher.cancel();
  co_await dispatcher.join();
  // Whoever leads now must not meet writes of ours: what is under way is cut off.
  co_await let_work_end(lease_lost_ ? Duration::zero() : options_.grace);
  co_await external_.stop();
  election.cancel();
  co_await election.join();
  if (lease_lost_) co_return fail(Reason::kCancelled, "the lease was lost");
  co_return Result<>();
}

// Our caches may be behind the writes of the one that led before us. What we do not find there must
// not exist, as if those writes had been ours.
Task<> Manager::catch_up() {
  const Instant won = clock_.instant();
  const auto version = lease_->version();
  const auto behind = [won, version](const InformerBase& informer) {
    const CacheBase& cache = informer.base_cache();
    return cache.complete_as_of() < won && (version == 0 || cache.last_version() < version);
  };
  const auto waiting = [this, behind] {
    return !stopping_ && !lease_lost_ &&
           std::ranges::any_of(informers_, [&](const auto& i) { return behind(*i); });
  };
  if (co_await with_deadline(clock_, won + kCatchUp, wait_while(changed_, waiting))) co_return;
  for (const auto& informer : informers_) {
    if (!behind(*informer)) continue;
    kDoubtsAll.hit();
    informer->base_cache().doubt(CacheBase::Doubt::kContents);
  }
  co_await wait_while(changed_, waiting);
}

Task<> Manager::dispatch() {
  bool first_keys = true;  // those of the first lists: every key there is
  for (;;) {
    poked_ = false;
    std::erase_if(turns_, [](const auto& turn) { return turn.second.done(); });
    size_t begun = 0;
    for (; workers_ < options_.at_once && begun < options_.at_once; ++begun) {
      auto item = queue_.take();
      if (!item) break;
      ++workers_;
      turns_.emplace(++number_, spawn(executor_, work(std::move(*item))));
    }
    if (begun == options_.at_once) {
      // Turns that had nothing to write are over already. Watches and the lease come in between.
      co_await pass_turn();
      continue;
    }
    if (first_keys && workers_ == 0) {
      first_keys = false;
      if (options_.gives_back_memory) give_back_memory();
    }
    const auto due = queue_.next_due();
    auto poked = wait_while(ready_, [this] { return !poked_; });
    if (due && workers_ < options_.at_once) {
      co_await with_deadline(clock_, *due, std::move(poked));
    } else {
      co_await std::move(poked);
    }
  }
}

Task<> Manager::work(Queue::Item item) {
  struct Done {  // also when we are cancelled
    Manager& manager;
    const Queue::Item& item;
    ~Done() {
      --manager.workers_;
      manager.queue_.done(item);
      manager.poke();
    }
  } done{*this, item};
  co_await controllers_[item.lane]->process(item.key);
}

Task<> Manager::let_work_end(Duration grace) {
  const Instant deadline = clock_.instant() + grace;
  co_await with_deadline(clock_, deadline, wait_while(ready_, [this] { return workers_ > 0; }));
  if (workers_ > 0) kCutOff.hit();
  for (auto& [number, turn] : turns_) turn.cancel();
  for (auto& [number, turn] : turns_) co_await turn.join();
  turns_.clear();
}

Task<> Manager::stop_background() {
  for (auto& task : background_) task.cancel();
  for (auto& task : background_) co_await task.join();
  background_.clear();
}

}  // namespace grapnel::runtime
