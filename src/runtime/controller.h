// One controller: takes a key, asks the planner, has the Plan carried out, and decides when the key
// comes back.
//
// What must hold:
//  - a key is planned only on caches that have seen all of this controller's own writes for it:
//    what a planner does not find there does not exist (so it may let a finalizer go). A cache that
//    does not show them in time is made to watch again, and at last to list again;
//  - after any failure the key comes back, later each time; a conflict almost at once;
//  - an object that is slow to plan is planned less often, so that one of five thousand children
//    takes no more of the loop than one of fifty: events that come meanwhile are answered together;
//  - a refusal is told to the planner once, so that it can set a condition, and does not loop.
#pragma once

#include <absl/container/flat_hash_map.h>

#include <functional>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/async.h"
#include "runtime/applier.h"
#include "runtime/cache.h"
#include "runtime/external_runner.h"
#include "runtime/plan.h"
#include "runtime/queue.h"

namespace grapnel::runtime {

// The Plan for a key as the caches stand now; nothing when there is nothing to plan for.
using Planner =
    std::function<std::optional<Plan>(const kube::Key& key, Time now, const Refusal* refused)>;

struct ControllerOptions {
  std::string name;  // in metrics, logs and events
  const kube::Kind* kind = nullptr;
  Planner plan;
  size_t at_once = 8;
  // How long our own write may take to show before we doubt the connection, and the cache.
  Duration patience = seconds(15);
  Duration longest_patience = minutes(5);
  // After a plan its key rests for so many times as long as planning took.
  int rest_factor = 50;
  Duration longest_rest = seconds(1);
};

class ControllerObserver {
 public:
  // As controller-runtime counts them. kWaiting: the caches have not seen our own writes yet.
  enum class End { kSuccess, kLookAgain, kError, kRefused, kDefect, kWaiting };
  virtual ~ControllerObserver() = default;
  virtual void planned(const std::string& controller, End end, Duration took) = 0;
};

class Controller {
 public:
  Controller(ControllerOptions options, Queue& queue, Applier& applier, Clock& clock);
  Controller(const Controller&) = delete;
  Controller& operator=(const Controller&) = delete;

  // A cache that this controller's planner reads: before each plan all those of a kind must have
  // seen what was written to it. The controller rests while one that it needs has no definition.
  enum class Need { kAlways, kIfDefined };  // kIfDefined: it works also before there is one
  void use(CacheBase& cache, Need need = Need::kAlways);
  void set_observer(ControllerObserver* observer) { observer_ = observer; }
  void on_event(std::function<void(const Event&)> f) { on_event_ = std::move(f); }
  // What carries out the questions and calls of its plans. Without it they are passed over.
  void use(ExternalRunner& external) { external_ = &external; }
  // What came of those of this key's object.
  const External& external(const kube::Key& key) const;

  void enqueue(const kube::Key& key, Queue::Priority priority = Queue::Priority::kNormal);
  // One turn of a key that was taken from the queue.
  Task<> process(kube::Key key);

  const std::string& name() const { return options_.name; }
  const kube::Kind& kind() const { return *options_.kind; }
  size_t lane() const { return lane_; }
  size_t at_once() const { return options_.at_once; }
  struct Used {
    CacheBase* cache = nullptr;
    Need need = Need::kAlways;
  };
  const std::vector<Used>& uses() const { return uses_; }

 private:
  using End = ControllerObserver::End;
  // What the caches have yet to show for a key.
  struct Unseen {
    std::vector<Trace> traces;
    Instant since{};
  };

  Task<End> turn(const kube::Key& key);
  Task<Result<>> clear_up(const kube::Key& key);
  Result<std::optional<Plan>> ask_planner(const kube::Key& key, const Refusal* refused);
  void report_defect(const kube::Key& key, std::string_view what) const;
  bool must_rest(const kube::Key& key);
  bool counts_too_often(const kube::Key& key, const Plan& plan);
  bool must_wait(const kube::Key& key);
  bool has_seen(const Trace& trace, Instant since) const;
  void forget_seen(Unseen& unseen) const;
  void look_for(const kube::Key& key, const std::vector<Trace>& traces);
  void wake_parked();
  void ask(const kube::Key& key, Plan& plan);
  void make(const kube::Key& key, std::vector<Call> calls);
  Task<End> handle_failure(const kube::Key& key, const Outcome& outcome);
  Task<> report_refusal(const kube::Key& key, const Outcome::Failed& failed);
  std::optional<ObjectRef> object_of(const kube::Key& key) const;

  ControllerOptions options_;
  Queue& queue_;
  Applier& applier_;
  Clock& clock_;
  size_t lane_;
  std::vector<Used> uses_;
  absl::flat_hash_map<kube::Key, Unseen> unseen_;
  absl::flat_hash_map<kube::Key, Instant> resting_;  // until when
  absl::flat_hash_map<kube::Key, Instant> told_;     // a status, when last
  std::set<kube::Key> parked_;  // came, and wait until the caches have seen those
  ExternalRunner* external_ = nullptr;
  ControllerObserver* observer_ = nullptr;
  std::function<void(const Event&)> on_event_;
};

// The key of the object that controls this one, when it is of that kind.
std::optional<kube::Key> controller_key(const kube::Meta& meta, const kube::Kind& kind);

}  // namespace grapnel::runtime
