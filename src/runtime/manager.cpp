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

std::string name_of(const kube::Kind& kind) {
  return fmt::format("{} ({})", kind.kind, kind.api_version());
}

std::string trouble_of(const Reflector& reflector) {
  if (reflector.missing()) return "not defined in this cluster";
  return reflector.trouble() ? reflector.trouble()->message : "still listing";
}

std::optional<Instant> earliest(std::optional<Instant> a, std::optional<Instant> b) {
  return a && b ? std::min(*a, *b) : a ? a : b;
}

std::string joined(const std::vector<std::pair<std::string, std::string>>& what) {
  std::string out;
  for (const auto& [kind, why] : what) {
    out += fmt::format("{}{}: {}", out.empty() ? "" : "; ", kind, why);
  }
  return out;
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
      note_change();
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

std::shared_ptr<Reflector> Manager::reflector_of(InformerOptions options) {
  for (const auto& reflector : reflectors_) {
    if (reflector->follows(options)) return reflector;
  }
  return reflectors_.emplace_back(
      std::make_shared<Reflector>(client_, clock_, random_, std::move(options)));
}

void Manager::adopt(std::unique_ptr<InformerBase> informer) {
  informer->on_change([this] { note_change(); });
  informer->base_cache().on_advance([this] {
    if (catching_up_) note_change();
  });
  applier_.use(informer->base_cache());
  informers_.push_back(std::move(informer));
}

Controller& Manager::add_controller(ControllerOptions options) {
  controllers_.push_back(
      std::make_unique<Controller>(std::move(options), queue_, applier_, clock_));
  controllers_.back()->use(external_);
  controllers_.back()->on_event(applier_options().on_event);
  standings_.emplace_back();
  return *controllers_.back();
}

void Manager::stop() {
  stopping_ = true;
  note_change();
}

void Manager::note_change() {
  news_ = true;
  changed_.notify_all();
}

void Manager::poke() {
  poked_ = true;
  ready_.notify_all();
}

bool Manager::synced() const {
  return std::ranges::all_of(informers_, [](const auto& informer) { return informer->synced(); });
}

const InformerBase* Manager::informer_of(const CacheBase& cache) const {
  const auto found = std::ranges::find_if(
      informers_, [&](const auto& informer) { return &informer->base_cache() == &cache; });
  return found == informers_.end() ? nullptr : found->get();
}

std::vector<const InformerBase*> Manager::waits_of(const Controller& controller) const {
  std::vector<const InformerBase*> waits;
  for (const auto& used : controller.uses()) {
    const InformerBase* informer = informer_of(*used.cache);
    if (informer == nullptr || informer->synced()) continue;
    // One that was there and went has left objects in the cache that nobody keeps up to date.
    const bool never_there = informer->missing() && !informer->was_synced();
    if (never_there && used.need == Need::kIfDefined) continue;
    waits.push_back(informer);
  }
  return waits;
}

std::vector<std::pair<std::string, std::string>> Manager::unready() const {
  std::vector<std::pair<std::string, std::string>> out;
  for (const auto& reflector : reflectors_) {
    if (reflector->synced() || reflector->missing()) continue;
    out.emplace_back(name_of(reflector->kind()), trouble_of(*reflector));
  }
  return out;
}

std::vector<std::pair<std::string, std::string>> Manager::resting() const {
  std::vector<std::pair<std::string, std::string>> out;
  for (const auto& controller : controllers_) {
    std::set<std::string> kinds;
    for (const auto* informer : waits_of(*controller)) {
      if (informer->missing()) kinds.insert(name_of(informer->kind()));
    }
    if (kinds.empty()) continue;
    out.emplace_back(controller->name(),
                     fmt::format("not defined in this cluster: {}", fmt::join(kinds, ", ")));
  }
  return out;
}

void Manager::add_checks(Health& health) const {
  health.add_ready("caches", [this]() -> std::optional<std::string> {
    const auto waiting = unready();
    if (waiting.empty()) return std::nullopt;
    return fmt::format("{}: {}", waiting.front().first, waiting.front().second);
  });
  health.add_ready_notes([this] {
    std::vector<std::string> notes;
    for (const auto& [controller, why] : resting()) {
      notes.push_back(fmt::format("{} rests: {}", controller, why));
    }
    return notes;
  });
}

Task<Result<>> Manager::run() {
  for (auto& standing : standings_) standing.since = clock_.instant();
  look();
  for (const auto& reflector : reflectors_) {
    background_.push_back(spawn(executor_, reflector->run()));
  }
  if (events_) background_.push_back(spawn(executor_, events_->run()));
  background_.push_back(spawn(executor_, supervise()));
  co_await wait_while(changed_, [this] { return !stopping_ && !failed_ && !begun_; });
  Result<> ended;
  if (failed_) {
    ended = fail(*failed_);
  } else if (!stopping_) {
    ended = co_await lead();
  }
  co_await stop_background();
  if (events_) co_await events_->flush(kLastEvents);
  if (lease_) co_await lease_->release();
  co_return ended;
}

// Lets each controller work while it can, for as long as we run.
Task<> Manager::supervise() {
  for (;;) {
    news_ = false;
    const auto next = look();
    auto news = wait_while(changed_, [this] { return !news_; });
    if (next) {
      co_await with_deadline(clock_, *next, std::move(news));
    } else {
      co_await std::move(news);
    }
  }
}

// Looks how every controller stands; returns when to look again even if nothing changes.
std::optional<Instant> Manager::look() {
  auto next = catch_up();
  bool late = false;
  bool ready = controllers_.empty() && synced();
  working_ = leading_ && controllers_.empty();
  for (size_t i = 0; i < controllers_.size(); ++i) {
    next = earliest(next, look_at(i));
    late = late || standings_[i].late;
    ready = ready || standings_[i].state == Standing::State::kReady;
  }
  if (ready && !std::exchange(begun_, true)) changed_.notify_all();
  if (late && !begun_ && !failed_) {
    failed_ = Error{.reason = Reason::kTimeout,
                    .message = "caches did not sync in time: " + joined(unready())};
    changed_.notify_all();
  }
  return next;
}

std::optional<Instant> Manager::look_at(size_t index) {
  using State = Standing::State;
  const Controller& controller = *controllers_[index];
  Standing& standing = standings_[index];
  const auto waits = waits_of(controller);
  const bool rests = !waits.empty() && std::ranges::all_of(waits, &InformerBase::missing);
  const State state = waits.empty() ? State::kReady : rests ? State::kRests : State::kWaits;
  if (state != standing.state) {
    if (rests) {
      log_warning("a controller rests until a kind is defined",
                  {{"controller", controller.name()}, {"kind", waits.front()->kind().kind}});
    } else if (standing.state == State::kRests && state == State::kReady) {
      log_info("a controller begins to work", {{"controller", controller.name()}});
    }
    standing = {.state = state, .since = clock_.instant()};
  }
  // A leader's controller also waits until its caches know what the leader before it wrote.
  const bool open =
      state == State::kReady && std::ranges::none_of(controller.uses(), [this](const auto& used) {
        const InformerBase* informer = informer_of(*used.cache);
        return informer != nullptr && is_behind(*informer);
      });
  queue_.set_open(controller.lane(), open);
  working_ = working_ || (leading_ && open);
  if (state != State::kWaits || standing.late) return std::nullopt;
  const Instant deadline = standing.since + options_.sync_timeout;
  if (clock_.instant() < deadline) return deadline;
  standing.late = true;
  for (const InformerBase* informer : waits) {
    log_error("a controller cannot work: a cache did not sync in time",
              {{"controller", controller.name()},
               {"kind", informer->kind().kind},
               {"why", trouble_of(informer->reflector())}});
  }
  return std::nullopt;
}

// From here to the end we are, or wait to be, the one that works.
Task<Result<>> Manager::lead() {
  Spawned election;
  if (lease_) election = spawn(executor_, lease_->run());
  co_await wait_while(
      changed_, [this] { return !stopping_ && lease_ && !lease_->leading() && !lease_lost_; });

  Spawned dispatcher;
  if (!stopping_ && (!lease_ || lease_->leading())) {
    if (lease_) won_ = Won{.when = clock_.instant(), .version = lease_->version()};
    leading_ = true;
    look();  // before a key is taken
    note_change();
    dispatcher = spawn(executor_, dispatch());
  }
  co_await wait_while(changed_, [this] { return !stopping_ && !lease_lost_; });

  leading_ = working_ = false;
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
bool Manager::is_behind(const InformerBase& informer) const {
  if (!won_ || !informer.synced()) return false;
  const CacheBase& cache = informer.base_cache();
  return cache.complete_as_of() < won_->when &&
         (won_->version == 0 || cache.last_version() < won_->version);
}

// Has caches that do not come up to date by themselves listed again, once.
std::optional<Instant> Manager::catch_up() {
  catching_up_ = false;
  std::optional<Instant> next;
  if (!won_) return next;
  for (const auto& informer : informers_) {
    if (!is_behind(*informer)) continue;
    catching_up_ = true;
    if (clock_.instant() < won_->when + kCatchUp) {
      next = won_->when + kCatchUp;
    } else if (asked_again_.insert(informer.get()).second) {
      kDoubtsAll.hit();
      informer->base_cache().doubt(CacheBase::Doubt::kContents);
    }
  }
  return next;
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
