#include "tests/simulation/world.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/asio/io_context.hpp>

#include "tests/simulation/model.h"
#include "tests/simulation/selection.h"

namespace grapnel::simulation {
namespace {

const kube::Kind& kLease = kube::kinds::kLease;
const kube::Kind& kEvent = kube::kinds::kEvent;
// Far more than any subject needs once the faults are over.
constexpr size_t kMostWritesToSettle = 1000;

// Nobody reads an Event that is half empty, and API servers refuse most of those.
std::optional<std::string> fault_of_event(const Json& event) {
  for (const auto* name :
       {"eventTime", "reportingController", "reportingInstance", "action", "reason", "note"}) {
    if (string_or(grapnel::find(event, name)).empty()) return fmt::format("has no {}", name);
  }
  const auto type = string_or(grapnel::find(event, "type"));
  if (type != "Normal" && type != "Warning") return fmt::format("is of type '{}'", type);
  if (string_or(grapnel::find(event, "note")).size() > 1024) return "is too long";
  if (!parse_time(string_or(grapnel::find(event, "eventTime")))) return "has no time";
  const auto ns = string_or(at(event, "regarding", "namespace"));
  if (meta_text(event, "namespace") != (ns.empty() ? "default" : ns)) return "lies elsewhere";
  for (const auto* name : {"apiVersion", "kind", "name", "uid"}) {
    if (string_or(at(event, "regarding", name)).empty()) {
      return fmt::format("is about something without {}", name);
    }
  }
  const Json* series = grapnel::find(event, "series");
  if (series != nullptr && int_or(grapnel::find(*series, "count")) < 2) return "is no series";
  return std::nullopt;
}

Faults draw_faults(Random& random) {
  // Mostly a bad day, now and then a dreadful one.
  const double scale = random.chance(0.2) ? 4.0 : 1.0;
  const auto upto = [&](double most) { return random.uniform() * most * scale; };
  return {.never_leaves = upto(0.03),
          .lost_there = upto(0.03),
          .lost_back = upto(0.03),
          .server_error = upto(0.03),
          .too_many = upto(0.02),
          .denied = upto(0.03),
          .webhook_down = upto(0.1),
          .hangs = upto(0.005),
          .slow = upto(0.05),
          .stream_cut = upto(0.05),
          .stream_frozen = upto(0.02),
          .page_expired = upto(0.3),
          .behind = upto(0.5),
          .slow_planner = upto(0.1)};
}

std::string_view name_of(const WriteSeen& write) {
  return string_or(at(*(write.after != nullptr ? write.after : write.before), "metadata", "name"));
}

uint64_t mix(uint64_t digest, std::string_view text) {
  for (const char c : text) digest = (digest ^ static_cast<unsigned char>(c)) * 0x100000001b3ULL;
  return digest;
}

}  // namespace

// What the operator takes for the time. Planning may take some, and is the only thing that does.
class OperatorClock final : public Clock {
 public:
  OperatorClock(VirtualClock& clock, Random& random, const Faults& faults)
      : clock_(clock), random_(random), faults_(faults) {}
  // Asked for when a plan is about to be made.
  Time now() const override {
    const Time now = clock_.now();
    if (random_.chance(faults_.slow_planner)) clock_.advance(microseconds(random_.below(20000)));
    return now;
  }
  Instant instant() const override { return clock_.instant(); }
  Task<> sleep_until(Instant when) override { return clock_.sleep_until(when); }

 private:
  VirtualClock& clock_;
  Random& random_;
  const Faults& faults_;
};

// A process: everything in it goes when it crashes, and its loop goes first.
struct World::Operator {
  Operator(World& world, std::string name_in)
      : name(std::move(name_in)),
        context(std::make_unique<boost::asio::io_context>(1)),
        random(world.random_.next()),
        wire(std::make_shared<Wire>(*world.server_, world.clock_, world.random_, world.faults_,
                                    context->get_executor(), name)),
        client(wire, nullptr,
               {.server = "http://server:1",
                .protobuf = world.random_.chance(0.5),
                .clock = &world.clock_}),
        clock(world.clock_, random, world.faults_),
        manager(context->get_executor(), client, clock, random, options(world)) {
    parts = world.subject_.install(manager, world.ns_);
    running = spawn(context->get_executor(), [](Operator& self) -> Task<> {
      auto end = co_await self.manager.run();
      self.ended = true;
    }(*this));
  }
  ~Operator() { context.reset(); }

  runtime::ManagerOptions options(World& world) const {
    runtime::ManagerOptions out;
    // A process that cannot sync would be restarted; so do we, but later.
    out.sync_timeout = minutes(5);
    out.list_page = 3;  // several pages even of so few
    out.gives_back_memory = false;
    out.events = runtime::EventOptions{.instance = name};
    if (world.with_lease_) {
      out.lease = runtime::LeaseOptions{.ns = "default", .name = "operator", .identity = name};
    }
    return out;
  }
  bool works() const {
    auto* lease = const_cast<runtime::Manager&>(manager).lease();
    return manager.working() && (lease == nullptr || lease->leading());
  }
  bool busy() const {
    auto& queue = const_cast<runtime::Manager&>(manager).queue();
    for (size_t lane = 0; lane < queue.lanes(); ++lane) {
      if (queue.processing(lane) > 0 || queue.ready(lane) > 0) return true;
    }
    return false;
  }

  std::string name;
  std::unique_ptr<boost::asio::io_context> context;
  Random random;
  std::shared_ptr<Wire> wire;
  kube::Client client;
  OperatorClock clock;
  runtime::Manager manager;
  std::shared_ptr<void> parts;
  Spawned running;
  bool ended = false;
  Instant frozen_until{};
  std::optional<uint64_t> crashes_after;  // so many more steps of its loop
};

std::vector<ServedKind> with_common(std::vector<ServedKind> kinds) {
  for (const auto& kind : {kLease, kEvent}) {
    if (std::ranges::find(kinds, kind, &ServedKind::kind) == kinds.end()) kinds.push_back({kind});
  }
  return kinds;
}

std::unique_ptr<Server> make_model(const Subject& subject, VirtualClock& clock, Random& random) {
  auto model = std::make_unique<ApiModel>(with_common(subject.kinds()), subject.webhooks());
  model->set_watch_list(random.chance(0.5));
  model->set_wall_time([&clock] { return format_time(clock.now()); });
  return model;
}

World::World(uint64_t seed, Subject& subject, WorldOptions options)
    : seed_(seed), subject_(subject), options_(std::move(options)), random_(seed) {
  calm_ = random_.chance(0.06);
  with_lease_ = random_.chance(0.5);
  if (!calm_) faults_ = draw_faults(random_);
  if (random_.chance(0.5)) ns_ = "default";
  server_ = options_.make_server(subject, clock_, random_);
  server_->set_webhooks_down([this] { return random_.chance(faults_.webhook_down); });
  server_->on_write([this](const WriteSeen& write) { saw_write(write); });
}

World::~World() = default;

Report World::run() {
  operators_.resize(with_lease_ ? 2 : 1);
  for (size_t slot = 0; slot < operators_.size(); ++slot) start_operator(slot);
  const Instant end = clock_.instant() + seconds(20 + random_.below(40));
  plan_trouble();
  run_until(end);
  say("all faults are over");
  trouble_ = false;
  faults_ = {};
  for (auto& op : operators_) {
    if (op) op->wire->cut_off(Duration::zero());
  }
  wake_cluster();
  settle();
  stay_at_rest();
  report_.virtual_time = clock_.elapsed();
  return report_;
}

// ---- trouble ------------------------------------------------------------------------------------

void World::plan_trouble() {
  disturb_later();
  collect_garbage_later();
  live_later();
  if (calm_) return;
  const uint64_t crashes = random_.below(4);
  for (uint64_t i = 0; i < crashes; ++i) {
    const size_t slot = random_.below(operators_.size());
    clock_.after(milliseconds(random_.below(40000)), [this, slot] { crash_and_restart(slot); });
  }
  const uint64_t others = random_.below(6);
  for (uint64_t i = 0; i < others; ++i) {
    const Duration when = milliseconds(random_.below(40000));
    switch (random_.below(5)) {
      case 0:
        clock_.after(when, [this] { server_->forget_history(); });
        break;
      case 1:
        clock_.after(when, [this] { server_->forget_pages(); });
        break;
      case 2:
        clock_.after(when, [this, slot = random_.below(operators_.size())] {
          freeze(slot, milliseconds(random_.below(30000)));
        });
        break;
      case 3:
        clock_.after(when, [this, slot = random_.below(operators_.size())] { trouble_wire(slot); });
        break;
      default:
        clock_.after(when, [this] { steal_lease(); });
    }
  }
}

void World::disturb_later() {
  clock_.after(milliseconds(random_.below(4000)), [this] {
    if (!trouble_) return;
    subject_.disturb(*server_, random_, {clock_.now(), trouble_, calm_});
    disturb_later();
  });
}

void World::collect_garbage_later() {
  clock_.after(milliseconds(100 + random_.below(3000)), [this] {
    garbage_waits_ = !server_->collect_one_orphan();
    if (!garbage_waits_) collect_garbage_later();
  });
}

void World::live_later(Duration after) {
  clock_.after(after + milliseconds(50 + random_.below(400)), [this, number = ++lives_] {
    if (number != lives_) return;  // woken before
    const auto next = subject_.live(*server_, random_, {clock_.now(), trouble_, calm_});
    cluster_waits_ = next != Duration::zero();
    if (next) live_later(*next);
  });
}

void World::wake_cluster() {
  if (std::exchange(garbage_waits_, false)) collect_garbage_later();
  if (std::exchange(cluster_waits_, false)) live_later();
}

void World::start_operator(size_t slot) {
  auto name = fmt::format("operator-{}", ++incarnations_);
  say("start " + name);
  operators_[slot] = std::make_unique<Operator>(*this, std::move(name));
  clock_.touch();
}

void World::crash(size_t slot) {
  if (!operators_[slot]) return;
  say("crash " + operators_[slot]->name);
  ++report_.crashes;
  operators_[slot].reset();
  clock_.after(milliseconds(random_.below(5000)), [this, slot] {
    if (!operators_[slot]) start_operator(slot);
  });
}

// Not now but in the middle of something: at some await from here on.
void World::crash_and_restart(size_t slot) {
  if (operators_[slot] && trouble_) operators_[slot]->crashes_after = random_.below(60);
  clock_.touch();
}

void World::freeze(size_t slot, Duration length) {
  if (!operators_[slot] || !trouble_) return;
  say(fmt::format("freeze {} for {} ms", operators_[slot]->name, length.count() / 1000));
  operators_[slot]->frozen_until = clock_.instant() + length;
  clock_.after(length, [this] { clock_.touch(); });  // then it goes on
}

// A network or a server in trouble for longer; sometimes far longer than all others.
void World::trouble_wire(size_t slot) {
  if (!operators_[slot] || !trouble_) return;
  Wire& wire = *operators_[slot]->wire;
  const bool long_one = random_.chance(0.2);
  switch (random_.below(4)) {
    case 0:
      return wire.refuse_events(milliseconds(random_.below(60000)));
    case 1:
      return wire.cut_off(milliseconds(random_.below(60000)));
    case 2:
      return wire.refuse_watches(milliseconds(random_.below(long_one ? 200000 : 30000)));
    default:
      return wire.silence_watches(milliseconds(random_.below(long_one ? 600000 : 30000)));
  }
}

// Somebody edits the Lease by hand.
void World::steal_lease() {
  if (!trouble_) return;
  say("the lease is stolen");
  server_->ask("admin", "PATCH", collection_of(kLease) + "/operator",
               JsonObject{{"spec", JsonObject{{"holderIdentity", "a thief"}}}});
}

// ---- the loop -----------------------------------------------------------------------------------

void World::run_until(Instant end) {
  do {
    if (!clock_.take_touched()) continue;
    run_loops();
    check_leaders();
  } while (!report_.violation && clock_.wake_next(end));
  clock_.advance(std::max(end - clock_.instant(), Duration::zero()));
}

void World::run_loops() {
  for (bool again = true; again && !report_.violation;) {
    again = server_->poll();
    const size_t first = random_.below(operators_.size());
    for (size_t i = 0; i < operators_.size(); ++i) {
      again |= run_loop((first + i) % operators_.size());
    }
  }
}

// Everything this operator can do now; true when it did something.
bool World::run_loop(size_t slot) {
  Operator* op = operators_[slot].get();
  if (op == nullptr || op->frozen_until > clock_.instant()) return false;
  bool did = false;
  for (;;) {
    op->context->restart();
    if (op->crashes_after) {
      if (*op->crashes_after == 0) {
        crash(slot);
        return true;
      }
      if (op->context->poll_one() == 0) break;
      --*op->crashes_after;
    } else if (op->context->poll() == 0) {
      break;
    }
    did = true;
  }
  if (op->ended) crash(slot);  // a process that has ended is started again
  return did;
}

// ---- rest ---------------------------------------------------------------------------------------

void World::settle() {
  const Instant limit = clock_.instant() + hours(2);
  const size_t most_writes = report_.writes + kMostWritesToSettle;
  for (auto& op : operators_) {
    if (op) op->crashes_after.reset();
  }
  while (!report_.violation) {
    const size_t writes_before = report_.writes;
    run_until(clock_.instant() + seconds(2));
    if (auto late = subject_.check_alive(*server_, clock_.now())) violate(std::move(*late));
    auto why = unsettled();
    if (!why && is_anybody_deaf()) why = "an operator is deaf";
    // Not only for a moment, between two writes that belong together.
    if (!why && report_.writes == writes_before) return say("all is as asked for");
    if (clock_.instant() > limit) violate("does not settle: " + why.value_or("it goes on"));
    if (report_.writes > most_writes) violate("writes without end: " + why.value_or("it goes on"));
  }
}

void World::stay_at_rest() {
  if (report_.violation) return;
  const size_t before = report_.writes;
  // Renewals of a lease go on for ever and cost the most: a shorter look must do there.
  run_until(clock_.instant() + (with_lease_ ? Duration(seconds(30)) : Duration(minutes(5))));
  if (report_.violation) return;
  if (report_.writes != before) violate("writes go on although all is as asked for");
  if (const auto why = unsettled()) violate("did not stay settled: " + *why);
}

std::optional<std::string> World::unsettled() {
  if (auto why = subject_.check_settled(*server_)) return why;
  if (!cluster_waits_) return "the cluster is at work";
  bool one_works = false;
  for (const auto& op : operators_) {
    if (!op) return "an operator is down";
    if (op->frozen_until > clock_.instant()) return "an operator is frozen";
    if (op->works()) {
      one_works = true;
      if (op->busy()) return "an operator is at work";
      if (auto why = cache_differs(*op)) return why;
    }
  }
  return one_works ? std::nullopt : std::optional<std::string>("nobody works");
}

// Who hears only later of all that happened would act then on what is long over.
bool World::is_anybody_deaf() const {
  return std::ranges::any_of(operators_, [](const auto& op) {
    return op->wire->watches() < op->manager.informers().size();
  });
}

std::optional<std::string> World::cache_differs(const Operator& op) const {
  for (const auto& informer : op.manager.informers()) {
    const auto& cache = informer->base_cache();
    const auto& filter = informer->filter();
    const Selection selection(filter.ns, filter.label_selector, filter.field_selector);
    auto objects = server_->all(informer->kind());
    std::erase_if(objects, [&](const Json* object) { return !selection.matches(*object); });
    if (objects.size() != cache.size()) {
      return fmt::format("{} has {} of {} {}", op.name, cache.size(), objects.size(),
                         informer->kind().plural);
    }
    for (const Json* object : objects) {
      const kube::Key key = key_of(*object);
      const auto version = string_or(at(*object, "metadata", "resourceVersion"));
      const auto* meta = cache.meta(key);
      if (meta == nullptr || std::to_string(meta->resource_version) != version) {
        return fmt::format("{} has another {}", op.name, key.text());
      }
    }
  }
  return std::nullopt;
}

// ---- invariants ---------------------------------------------------------------------------------

void World::saw_write(const WriteSeen& write) {
  report_.digest =
      mix(report_.digest, fmt::format("{} {} {} {} {}", clock_.elapsed().count(), write.who,
                                      write.verb, name_of(write), server_->version()));
  if (write.kind == kLease) return;
  wake_cluster();
  // Events are sent again long after what they tell of.
  if (write.changed && write.kind != kEvent) ++report_.writes;
  say(fmt::format("{} {} {} {}{}", write.who, write.verb, write.kind.kind, name_of(write),
                  write.changed ? "" : " (changes nothing)"));
  if (calm_ && !write.changed && write.who.starts_with("operator"))
    violate("a write that changes nothing");
  if (write.kind == kEvent && write.after != nullptr) {
    if (auto fault = fault_of_event(*write.after)) {
      violate(fmt::format("the event {} {}", name_of(write), *fault));
    }
  }
  if (auto broken = subject_.check_write(*server_, write)) violate(*broken);
}

void World::check_leaders() {
  size_t leaders = 0;
  for (const auto& op : operators_) leaders += op && with_lease_ && op->works() ? 1 : 0;
  if (leaders > 1) violate("two operators lead at the same time");
}

void World::violate(std::string what) {
  if (!report_.violation) report_.violation = fmt::format("seed {}: {}", seed_, what);
}

void World::say(const std::string& what) const {
  if (options_.verbose)
    fmt::print("{:10.6f} {}\n", static_cast<double>(clock_.elapsed().count()) / 1e6, what);
}

}  // namespace grapnel::simulation
