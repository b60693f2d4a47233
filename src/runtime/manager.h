// An operator put together: informers fill caches, handlers queue keys, controllers work on them.
//
//   Manager manager(executor, client, clock, random, {});
//   auto& jobs = manager.add_informer<Job>({.kind = kinds::kJob}, decode_job);
//   auto& jobsets = manager.add_informer<JobSet>({.kind = kinds::kJobSet}, decode_jobset);
//   auto& controller = manager.add_controller({.name = "jobset", .kind = &kinds::kJobSet, .plan =
//   …}); manager.watch(jobsets, controller); manager.watch_owned(jobs, controller); auto ended =
//   co_await manager.run();
//
// Life: add everything, then run(). To end it call stop() and let run() return: it takes no new
// keys, lets the writes that are under way end, stops the watches, and gives the lease back last.
// The manager must outlive run(), and be destroyed only after it or after the loop.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/async.h"
#include "base/random.h"
#include "kube/client.h"
#include "runtime/applier.h"
#include "runtime/controller.h"
#include "runtime/events.h"
#include "runtime/health.h"
#include "runtime/informer.h"
#include "runtime/lease.h"
#include "runtime/queue.h"

namespace grapnel::runtime {

struct ManagerOptions {
  Duration sync_timeout = minutes(2);
  Duration grace = seconds(30);   // for work under way when we stop
  size_t at_once = 64;            // keys worked on, over all controllers
  int64_t list_page = 0;          // objects in a page of a list; 0: as each informer says
  bool gives_back_memory = true;  // once the keys of the first lists are done
  QueueOptions queue = {};
  ApplierOptions applier = {};                        // without on_event: they go to `events`
  std::optional<LeaseOptions> lease = std::nullopt;   // none: we are alone
  std::optional<EventOptions> events = std::nullopt;  // none: events are not recorded
};

// Numbers that are read off the caches whenever somebody asks for metrics.
struct CacheGauge {
  struct Sample {
    MetricLabels labels;
    double value = 0;
  };
  std::string name;
  std::string help;
  std::function<std::vector<Sample>()> read;
};

class Manager {
 public:
  Manager(Executor executor, kube::Client& client, Clock& clock, Random& random,
          ManagerOptions options);
  Manager(const Manager&) = delete;
  Manager& operator=(const Manager&) = delete;
  ~Manager();

  template <class T>
  Informer<T>& add_informer(InformerOptions options, typename Informer<T>::Decode decode) {
    if (options_.list_page != 0) options.watcher.page = options_.list_page;
    auto informer = std::make_unique<Informer<T>>(client_, clock_, random_, std::move(options),
                                                  std::move(decode));
    auto& added = *informer;
    adopt(std::move(informer));
    return added;
  }
  Controller& add_controller(ControllerOptions options);
  void add_gauge(CacheGauge gauge) { gauges_.push_back(std::move(gauge)); }

  // Keys of the objects themselves.
  template <class T>
  void watch(Informer<T>& informer, Controller& controller) {
    controller.use(informer.cache());
    informer.cache().add_handler([&](const T* before, const T* after) {
      controller.enqueue((after != nullptr ? after : before)->meta.key, priority_of(informer));
    });
  }
  // Keys of the objects of the controller's kind that control them, before and after.
  template <class T>
  void watch_owned(Informer<T>& informer, Controller& controller) {
    watch_mapped<T>(informer, controller, [&controller](const T& object) {
      const auto key = controller_key(object.meta, controller.kind());
      return key ? std::vector<kube::Key>{*key} : std::vector<kube::Key>();
    });
  }
  // Keys that `map` gives for an object, before and after.
  template <class T>
  void watch_mapped(Informer<T>& informer, Controller& controller,
                    std::function<std::vector<kube::Key>(const T&)> map) {
    controller.use(informer.cache());
    informer.cache().add_handler(
        [&controller, &informer, map = std::move(map)](const T* before, const T* after) {
          for (const T* object : {before, after}) {
            if (object == nullptr) continue;
            for (const auto& key : map(*object)) controller.enqueue(key, priority_of(informer));
          }
        });
  }

  // Until stop(), or until it cannot go on: a kind that does not sync, a lease that is lost. Then
  // the program should end.
  Task<Result<>> run();
  void stop();

  bool synced() const;
  bool working() const { return working_; }
  // Kinds whose caches are not synced, and why.
  std::vector<std::pair<std::string, std::string>> unready() const;
  void add_checks(Health& health) const;  // ready: when all caches are synced

  Queue& queue() { return queue_; }
  Applier& applier() { return applier_; }
  Lease* lease() { return lease_.get(); }
  EventRecorder* events() { return events_.get(); }
  const std::vector<std::unique_ptr<InformerBase>>& informers() const { return informers_; }
  const std::vector<std::unique_ptr<Controller>>& controllers() const { return controllers_; }
  const std::vector<CacheGauge>& gauges() const { return gauges_; }

 private:
  // What the first list brings is no news: changes go before it.
  static Queue::Priority priority_of(const InformerBase& informer) {
    return informer.synced() ? Queue::Priority::kNormal : Queue::Priority::kLow;
  }
  void adopt(std::unique_ptr<InformerBase> informer);
  Task<Result<>> wait_for_caches();
  Task<Result<>> lead();
  Task<> catch_up();
  void poke();
  Task<> dispatch();
  Task<> work(Queue::Item item);
  Task<> let_work_end(Duration grace);
  Task<> stop_background();
  ApplierOptions applier_options() const;

  Executor executor_;
  kube::Client& client_;
  Clock& clock_;
  Random& random_;
  ManagerOptions options_;
  Queue queue_;
  std::unique_ptr<Lease> lease_;
  std::unique_ptr<EventRecorder> events_;
  Applier applier_;
  std::vector<std::unique_ptr<InformerBase>> informers_;
  std::vector<std::unique_ptr<Controller>> controllers_;  // by lane
  std::vector<CacheGauge> gauges_;
  Signal changed_;  // a kind synced, stop() was called, the lease was won or lost
  Signal ready_;    // the queue has something, or a worker has ended
  bool poked_ = false;
  bool stopping_ = false;
  bool lease_lost_ = false;
  bool working_ = false;
  size_t workers_ = 0;
  std::vector<Spawned> background_;    // informers, and what sends events
  std::map<uint64_t, Spawned> turns_;  // keys being worked on
  uint64_t number_ = 0;
};

}  // namespace grapnel::runtime
