// The keys that wait to be worked on. One queue serves all controllers, each in a lane of its own;
// lanes take turns, so that a controller with ten thousand keys does not hold up one with ten.
//
// What must hold:
//  - a key is in its lane once, however often it is added;
//  - a key is never worked on twice at once: added meanwhile, it comes back when it is done();
//  - an add is never lost, and of several delays the earliest counts;
//  - keys of low priority (the initial list, resyncs) wait behind the others, but only for so long.
//
// It holds no coroutine: the manager waits for on_ready() or next_due() and takes.
#pragma once

#include <absl/container/flat_hash_map.h>

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/async.h"
#include "base/random.h"
#include "kube/meta.h"

namespace grapnel::runtime {

// What the metrics want to know. Each method does nothing unless it is overridden.
class QueueObserver {
 public:
  virtual ~QueueObserver() = default;
  virtual void added(size_t lane) { (void)lane; }
  virtual void depth(size_t lane, size_t ready) { (void)lane, (void)ready; }
  virtual void taken(size_t lane, Duration waited) { (void)lane, (void)waited; }
  virtual void finished(size_t lane, Duration took) { (void)lane, (void)took; }
  virtual void retried(size_t lane) { (void)lane; }
};

struct QueueOptions {
  Duration first_back_off = milliseconds(5);
  Duration longest_back_off = seconds(1000);
  double jitter = 0.2;                 // a back-off is longer by up to this part of it
  Duration low_priority = seconds(5);  // how much longer than others a key of low priority waits
};

class Queue {
 public:
  enum class Priority { kNormal, kLow };
  struct Item {
    size_t lane = 0;
    kube::Key key;
    bool operator==(const Item&) const = default;
  };

  Queue(Clock& clock, Random& random, QueueOptions options = {})
      : clock_(clock), random_(random), options_(options) {}

  // At most `at_once` keys of the lane are taken and not yet done.
  size_t add_lane(std::string name, size_t at_once);
  // From a closed lane nothing is taken; what is added waits there until it is open again.
  void set_open(size_t lane, bool open);
  void set_observer(QueueObserver* observer) { observer_ = observer; }
  void on_ready(std::function<void()> f) { on_ready_ = std::move(f); }

  void add(size_t lane, const kube::Key& key, Priority priority = Priority::kNormal);
  void add_after(size_t lane, const kube::Key& key, Duration delay);
  // After the key's back-off, which doubles each time, and not before `at_least`.
  void retry(size_t lane, const kube::Key& key, Duration at_least = {});
  void forget(size_t lane, const kube::Key& key);  // the back-off starts again from the beginning
  int failures(size_t lane, const kube::Key& key) const;

  // The next key, from the lane whose turn it is; nothing when none is ready.
  std::optional<Item> take();
  void done(const Item& item);
  // When the first delayed key becomes ready.
  std::optional<Instant> next_due() const;

  size_t ready(size_t lane) const { return lanes_[lane].ready.size(); }
  size_t processing(size_t lane) const { return lanes_[lane].processing; }
  size_t lanes() const { return lanes_.size(); }
  const std::string& name(size_t lane) const { return lanes_[lane].name; }
  // Of the key that has been worked on the longest, and of all together.
  struct Unfinished {
    Duration longest{};
    Duration sum{};
  };
  Unfinished unfinished(size_t lane) const;

 private:
  // When a key is to be taken among those that are ready; the number keeps equals in order.
  using Rank = std::pair<Instant, uint64_t>;
  struct Entry {
    std::optional<Rank> ready;
    std::optional<Rank> delayed;
    Instant since{};  // when it became ready, or was taken
    bool processing = false;
    std::optional<Priority> again;  // added while it was being processed
    int failures = 0;
    bool idle() const { return !ready && !delayed && !processing && failures == 0; }
  };
  struct Lane {
    std::string name;
    size_t at_once = 1;
    size_t processing = 0;
    bool open = true;
    absl::flat_hash_map<kube::Key, Entry> entries;
    std::map<Rank, kube::Key> ready;
  };

  void make_ready(size_t lane, const kube::Key& key, Entry& entry, Priority priority);
  void drop_if_idle(size_t lane, const kube::Key& key);
  void undelay(Entry& entry);
  void release_due();

  Clock& clock_;
  Random& random_;
  QueueOptions options_;
  QueueObserver* observer_ = nullptr;
  std::function<void()> on_ready_;
  std::vector<Lane> lanes_;
  std::map<Rank, Item> delayed_;
  size_t turn_ = 0;
  uint64_t number_ = 0;
};

}  // namespace grapnel::runtime
