// Tells people what happened, as events.k8s.io/v1 Events. What repeats becomes one Event with a
// count: the first is posted, the second turns it into a series, and after that the server hears of
// it again only when the series has gone on for half an hour, or has ended (six minutes of quiet).
//
// Recording never waits and never fails: beyond a thousand unsent events the newest are dropped,
// and counted.
#pragma once

#include <deque>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/async.h"
#include "document/json.h"
#include "kube/client.h"
#include "runtime/plan.h"

namespace grapnel::runtime {

struct EventOptions {
  std::string controller = "grapnel";  // reportingController
  std::string instance = "grapnel";    // reportingInstance: the pod
  size_t longest_queue = 1000;
  size_t most_series = 4096;
  Duration series_ends_after = minutes(6);
  Duration series_refreshed_every = minutes(30);
};

// What to send: a new Event, or the new count of one.
struct EventToSend {
  std::string ns;
  std::string name;
  Json event;  // whole, also for a patch: should the server have forgotten it
  bool patch = false;
};

// Which events are one series, and when the server hears of it. Pure.
class EventSeries {
 public:
  explicit EventSeries(EventOptions options) : options_(std::move(options)) {}
  std::optional<EventToSend> record(const Event& event, Time now);
  // To be called once a minute or so.
  std::vector<EventToSend> sweep(Time now);
  size_t size() const { return series_.size(); }

 private:
  struct Series {
    Json event;
    std::string ns;
    std::string name;
    int64_t count = 1;
    int64_t sent = 1;  // the count that the server knows
    Time last{};
    Time last_sent{};
  };
  EventToSend update(Series& series, Time now) const;
  Json first_event(const Event& event, const std::string& name, Time now) const;
  void make_room();

  EventOptions options_;
  std::map<std::string, Series> series_;
  uint64_t number_ = 0;
};

class EventRecorder {
 public:
  EventRecorder(Executor executor, kube::Client& client, Clock& clock, EventOptions options);

  void record(const Event& event);
  Task<> run();  // sends until it is cancelled
  // Sends what is waiting, for as long as that may take.
  Task<> flush(Duration longest);
  uint64_t dropped() const { return dropped_; }
  size_t waiting() const { return queue_.size(); }

 private:
  void push(EventToSend event);
  Task<> send_all();
  Task<> send(EventToSend event);

  kube::Client& client_;
  Clock& clock_;
  EventOptions options_;
  EventSeries series_;
  std::deque<EventToSend> queue_;
  Signal filled_;
  uint64_t dropped_ = 0;
};

}  // namespace grapnel::runtime
