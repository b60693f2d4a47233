// The objects of one kind as last seen, with indexes. Filled by an informer, read by planners.
//
// T is a struct with `kube::Meta meta` and operator==, and holds only what planners read: an update
// that changes none of that is stored but tells nobody. Handlers run at once, in order, after the
// cache and all its indexes have changed. Everything that is walked is walked in the order of keys,
// so that a run can be repeated.
#pragma once

#include <absl/container/flat_hash_map.h>
#include <absl/container/flat_hash_set.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/time.h"
#include "kube/kind.h"
#include "kube/meta.h"

namespace grapnel::runtime {

// What the rest of the runtime asks of a cache, whatever it holds.
class CacheBase {
 public:
  explicit CacheBase(kube::Kind kind) : kind_(kind) {}
  CacheBase(const CacheBase&) = delete;
  CacheBase& operator=(const CacheBase&) = delete;
  virtual ~CacheBase() = default;

  const kube::Kind& kind() const { return kind_; }
  virtual const kube::Meta* meta(const kube::Key& key) const = 0;  // nullptr: not there
  virtual size_t size() const = 0;

  // Everything up to this version has been seen.
  kube::ResourceVersion last_version() const { return last_version_; }
  void advance(kube::ResourceVersion version);
  // Called after each advance().
  void on_advance(std::function<void()> f) { listeners_.push_back(std::move(f)); }

  // Everything that there was at that moment has been seen: the server was asked for its newest
  // then, whatever its versions mean.
  Instant complete_as_of() const { return complete_as_of_; }
  void set_complete_as_of(Instant moment) { complete_as_of_ = moment; }

  // Something that must have happened does not show here. The connection may be dead; if that is
  // not it, all must be read again.
  enum class Doubt { kConnection, kContents };
  void doubt(Doubt doubt) const {
    if (on_doubt_) on_doubt_(doubt);
  }
  void on_doubt(std::function<void(Doubt)> f) { on_doubt_ = std::move(f); }

 private:
  kube::Kind kind_;
  kube::ResourceVersion last_version_ = 0;
  Instant complete_as_of_{};
  std::vector<std::function<void()>> listeners_;
  std::function<void(Doubt)> on_doubt_;
};

// Objects under the values of one index, each bucket in the order of keys.
template <class T, class Value>
class CacheIndex {
 public:
  using Ptr = std::shared_ptr<const T>;

  void add(const Value& value, const Ptr& object) {
    auto& bucket = buckets_[value];
    bucket.insert(place(bucket, object->meta.key), object);
  }
  void remove(const Value& value, const T& object) {
    const auto found = buckets_.find(value);
    if (found == buckets_.end()) return;
    auto& bucket = found->second;
    const auto at = place(bucket, object.meta.key);
    if (at != bucket.end() && (*at)->meta.key == object.meta.key) bucket.erase(at);
    if (bucket.empty()) buckets_.erase(found);
  }
  std::vector<Ptr> find(const Value& value) const {
    const auto found = buckets_.find(value);
    if (found == buckets_.end()) return {};
    return {found->second.begin(), found->second.end()};
  }

 private:
  using Bucket = absl::InlinedVector<Ptr, 1>;
  static auto place(Bucket& bucket, const kube::Key& key) {
    return std::lower_bound(bucket.begin(), bucket.end(), key,
                            [](const Ptr& a, const kube::Key& b) { return a->meta.key < b; });
  }
  absl::flat_hash_map<Value, Bucket> buckets_;
};

template <class T>
class Cache final : public CacheBase {
 public:
  using Ptr = std::shared_ptr<const T>;
  // Added: before is null. Gone: after is null, before is the last state we knew.
  using Handler = std::function<void(const T* before, const T* after)>;
  using IndexFunction = std::function<std::vector<std::string>(const T&)>;

  using CacheBase::CacheBase;

  // Both before the first object comes.
  void add_handler(Handler handler) { handlers_.push_back(std::move(handler)); }
  void add_index(std::string name, IndexFunction function) {
    indexes_.push_back({std::move(name), std::move(function), {}});
  }

  Ptr get(const kube::Key& key) const {
    const auto found = entries_.find(key);
    return found == entries_.end() ? nullptr : found->object;
  }
  std::vector<Ptr> all() const {
    std::vector<Ptr> out;
    out.reserve(entries_.size());
    for (const auto& entry : entries_) out.push_back(entry.object);
    std::ranges::sort(out, [](const Ptr& a, const Ptr& b) { return a->meta.key < b->meta.key; });
    return out;
  }
  // Those whose controller has this uid.
  std::vector<Ptr> controlled_by(const kube::Uid& uid) const { return by_controller_.find(uid); }
  bool has_index(std::string_view name) const {
    return std::ranges::any_of(indexes_, [&](const auto& index) { return index.name == name; });
  }
  // Those under this value of the index added by that name.
  std::vector<Ptr> indexed(std::string_view index, const std::string& value) const {
    for (const auto& i : indexes_) {
      if (i.name == index) return i.objects.find(value);
    }
    return {};
  }

  const kube::Meta* meta(const kube::Key& key) const override {
    const auto found = entries_.find(key);
    return found == entries_.end() ? nullptr : &found->object->meta;
  }
  size_t size() const override { return entries_.size(); }

  // Returns whether anything a planner can read has changed. An object of the same name but another
  // uid is another object: the old one has gone, and handlers are told so.
  bool update(T object) {
    const auto found = entries_.find(object.meta.key);
    if (found == entries_.end()) {
      const auto after = std::make_shared<const T>(std::move(object));
      entries_.insert({after, round_});
      index(after);
      tell(nullptr, after.get());
      return true;
    }
    if (found->object->meta.uid != object.meta.uid) {
      remove(kube::Key(object.meta.key));
      return update(std::move(object));
    }
    found->round = round_;
    const Ptr before = found->object;
    const bool changed = !same_but_for_version(*before, object);
    const auto after = std::make_shared<const T>(std::move(object));
    unindex(*before);
    found->object = after;
    index(after);
    if (changed) tell(before.get(), after.get());
    return changed;
  }

  bool remove(const kube::Key& key) {
    const auto found = entries_.find(key);
    if (found == entries_.end()) return false;
    const Ptr before = found->object;
    unindex(*before);
    entries_.erase(found);
    tell(before.get(), nullptr);
    return true;
  }

  // Objects that are not updated from here to finish_replace() are gone. In place, so that a relist
  // costs no second copy of the cache.
  void begin_replace() { ++round_; }
  // It exists still, though in a state that cannot be read.
  void keep(const kube::Key& key) {
    if (const auto found = entries_.find(key); found != entries_.end()) found->round = round_;
  }
  void finish_replace() {
    std::vector<kube::Key> gone;
    for (const auto& entry : entries_) {
      if (entry.round != round_) gone.push_back(entry.object->meta.key);
    }
    std::sort(gone.begin(), gone.end());
    for (const auto& key : gone) remove(key);
  }

 private:
  // The key lives in the object alone.
  struct Entry {
    mutable Ptr object;
    mutable uint32_t round = 0;
  };
  struct Hash {
    using is_transparent = void;
    size_t operator()(const kube::Key& key) const { return absl::Hash<kube::Key>()(key); }
    size_t operator()(const Entry& entry) const { return (*this)(entry.object->meta.key); }
  };
  struct Equal {
    using is_transparent = void;
    static const kube::Key& key(const kube::Key& k) { return k; }
    static const kube::Key& key(const Entry& e) { return e.object->meta.key; }
    template <class A, class B>
    bool operator()(const A& a, const B& b) const {
      return key(a) == key(b);
    }
  };
  struct NamedIndex {
    std::string name;
    IndexFunction function;
    CacheIndex<T, std::string> objects;
  };

  static bool same_but_for_version(const T& before, T& after) {
    const auto version = std::exchange(after.meta.resource_version, before.meta.resource_version);
    const bool same = before == after;
    after.meta.resource_version = version;
    return same;
  }
  void index(const Ptr& object) {
    if (const auto* owner = object->meta.controller()) by_controller_.add(owner->uid, object);
    for (auto& i : indexes_) {
      for (const auto& value : i.function(*object)) i.objects.add(value, object);
    }
  }
  void unindex(const T& object) {
    if (const auto* owner = object.meta.controller()) by_controller_.remove(owner->uid, object);
    for (auto& i : indexes_) {
      for (const auto& value : i.function(object)) i.objects.remove(value, object);
    }
  }
  void tell(const T* before, const T* after) {
    for (const auto& handler : handlers_) handler(before, after);
  }

  absl::flat_hash_set<Entry, Hash, Equal> entries_;
  CacheIndex<T, kube::Uid> by_controller_;
  std::vector<NamedIndex> indexes_;
  std::vector<Handler> handlers_;
  uint32_t round_ = 0;
};

}  // namespace grapnel::runtime
