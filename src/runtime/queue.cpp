#include "runtime/queue.h"

#include <algorithm>

namespace grapnel::runtime {

size_t Queue::add_lane(std::string name, size_t at_once) {
  lanes_.push_back({.name = std::move(name), .at_once = std::max<size_t>(at_once, 1)});
  return lanes_.size() - 1;
}

void Queue::set_open(size_t lane, bool open) {
  if (lanes_[lane].open == open) return;
  lanes_[lane].open = open;
  if (open && on_ready_ && !lanes_[lane].ready.empty()) on_ready_();
}

void Queue::add(size_t lane, const kube::Key& key, Priority priority) {
  Entry& entry = lanes_[lane].entries[key];
  if (observer_ != nullptr) observer_->added(lane);
  if (entry.processing) {
    if (entry.again != Priority::kNormal) entry.again = priority;
    return;
  }
  make_ready(lane, key, entry, priority);
}

void Queue::make_ready(size_t lane, const kube::Key& key, Entry& entry, Priority priority) {
  const Instant now = clock_.instant();
  // Waiting longer by a fixed time is an order that ages by itself.
  const Rank rank{priority == Priority::kLow ? now + options_.low_priority : now, ++number_};
  if (entry.ready) {
    if (*entry.ready <= rank) return;
    lanes_[lane].ready.erase(*entry.ready);
  } else {
    entry.since = now;
  }
  entry.ready = rank;
  lanes_[lane].ready.emplace(rank, key);
  if (observer_ != nullptr) observer_->depth(lane, lanes_[lane].ready.size());
  if (on_ready_) on_ready_();
}

void Queue::add_after(size_t lane, const kube::Key& key, Duration delay) {
  if (delay <= Duration::zero()) return add(lane, key);
  Entry& entry = lanes_[lane].entries[key];
  const Rank rank{clock_.instant() + delay, ++number_};
  if (entry.delayed && *entry.delayed <= rank) return;
  undelay(entry);
  entry.delayed = rank;
  delayed_.emplace(rank, Item{lane, key});
  if (delayed_.begin()->first == rank && on_ready_) on_ready_();
}

void Queue::retry(size_t lane, const kube::Key& key, Duration at_least) {
  Entry& entry = lanes_[lane].entries[key];
  const int doublings = std::min(entry.failures, 40);
  ++entry.failures;
  const Duration base = doublings > 30
                            ? options_.longest_back_off
                            : std::min(options_.first_back_off * (int64_t{1} << doublings),
                                       options_.longest_back_off);
  const double jitter = static_cast<double>(base.count()) * options_.jitter * random_.uniform();
  if (observer_ != nullptr) observer_->retried(lane);
  add_after(lane, key, std::max(base + Duration(static_cast<int64_t>(jitter)), at_least));
}

void Queue::forget(size_t lane, const kube::Key& key) {
  const auto found = lanes_[lane].entries.find(key);
  if (found == lanes_[lane].entries.end()) return;
  found->second.failures = 0;
  drop_if_idle(lane, key);
}

int Queue::failures(size_t lane, const kube::Key& key) const {
  const auto found = lanes_[lane].entries.find(key);
  return found == lanes_[lane].entries.end() ? 0 : found->second.failures;
}

std::optional<Queue::Item> Queue::take() {
  release_due();
  for (size_t i = 0; i < lanes_.size(); ++i) {
    const size_t index = (turn_ + i) % lanes_.size();
    Lane& lane = lanes_[index];
    if (!lane.open || lane.ready.empty() || lane.processing >= lane.at_once) continue;
    turn_ = index + 1;
    Item item{index, lane.ready.begin()->second};
    lane.ready.erase(lane.ready.begin());
    Entry& entry = lane.entries[item.key];
    const Instant now = clock_.instant();
    if (observer_ != nullptr) {
      observer_->depth(index, lane.ready.size());
      observer_->taken(index, now - entry.since);
    }
    entry.ready.reset();
    entry.processing = true;
    entry.since = now;
    ++lane.processing;
    return item;
  }
  return std::nullopt;
}

void Queue::done(const Item& item) {
  Lane& lane = lanes_[item.lane];
  const auto found = lane.entries.find(item.key);
  if (found == lane.entries.end() || !found->second.processing) return;
  Entry& entry = found->second;
  entry.processing = false;
  --lane.processing;
  if (observer_ != nullptr) observer_->finished(item.lane, clock_.instant() - entry.since);
  if (const auto again = std::exchange(entry.again, std::nullopt)) {
    make_ready(item.lane, item.key, entry, *again);
  } else {
    drop_if_idle(item.lane, item.key);
    if (on_ready_ && !lane.ready.empty()) on_ready_();  // the lane has room again
  }
}

std::optional<Instant> Queue::next_due() const {
  if (delayed_.empty()) return std::nullopt;
  return delayed_.begin()->first.first;
}

void Queue::release_due() {
  const Instant now = clock_.instant();
  while (!delayed_.empty() && delayed_.begin()->first.first <= now) {
    const Item item = delayed_.begin()->second;
    delayed_.erase(delayed_.begin());
    lanes_[item.lane].entries[item.key].delayed.reset();
    add(item.lane, item.key);
  }
}

void Queue::undelay(Entry& entry) {
  if (entry.delayed) delayed_.erase(*entry.delayed);
  entry.delayed.reset();
}

void Queue::drop_if_idle(size_t lane, const kube::Key& key) {
  const auto found = lanes_[lane].entries.find(key);
  if (found != lanes_[lane].entries.end() && found->second.idle()) {
    lanes_[lane].entries.erase(found);
    // The first list fills it with every key there is, for once.
    if (lanes_[lane].entries.empty()) lanes_[lane].entries.rehash(0);
  }
}

Queue::Unfinished Queue::unfinished(size_t lane) const {
  Unfinished out;
  const Instant now = clock_.instant();
  for (const auto& [key, entry] : lanes_[lane].entries) {
    if (!entry.processing) continue;
    out.sum += now - entry.since;
    out.longest = std::max(out.longest, now - entry.since);
  }
  return out;
}

}  // namespace grapnel::runtime
