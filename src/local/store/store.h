// Every object of the laptop cluster: in memory, with a durable copy on disk.
//
// A write gets the next version, waits until its batch is on disk, becomes visible, and only then
// is answered: what a reader or a watcher has seen is never lost. Writes that wait together are
// committed together. settle() serialises the changes of one object.
//
// Each collection keeps its newest changes. Watches are served from them, and lists at an older
// version are rebuilt from them. How far back that reaches is limited by a number of bytes over all
// collections; for anything older the answer is Expired.
//
// One thread, except that the commit itself runs on a helper thread.
#pragma once

#include <absl/container/flat_hash_map.h>

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/async.h"
#include "base/result.h"
#include "local/store/database.h"
#include "local/store/object.h"

namespace grapnel::local {

struct StoreOptions {
  std::string path;  // "": in memory only
  size_t history_bytes = 16UL << 20;
};

// One change, as watches tell it.
struct Change {
  uint64_t version = 0;
  ObjectPtr object;    // afterwards; for a deletion, the last state with the deletion's version
  ObjectPtr previous;  // before; nothing for a creation
  bool deleted = false;
};

struct ListRange {
  std::string prefix;    // "namespace/", or "" for all
  std::string after;     // only keys beyond this one
  size_t limit = 0;      // 0: all
  uint64_t version = 0;  // 0: the newest
  std::function<bool(const Object&)> filter;
};

struct Page {
  std::vector<ObjectPtr> items;
  uint64_t version = 0;  // the state the page shows
  bool more = false;
  size_t remaining = 0;  // how many follow; only counted when there is no filter
};

// One resource's objects and their newest changes.
struct Collection;

class Store {
 public:
  static Result<std::unique_ptr<Store>> open(Executor executor, StoreOptions options);
  ~Store();
  Store(const Store&) = delete;

  // The newest version that readers can see.
  uint64_t version() const { return visible_; }
  ObjectPtr get(std::string_view resource, std::string_view key) const;
  size_t count(std::string_view resource) const;
  // Expired when the version asked for is older than the history.
  Result<Page> list(std::string_view resource, const ListRange& range) const;

  // Waits until no write of this object is under way. What get() returns then holds until the
  // caller suspends, which it must not do between this and put() or remove().
  Task<> settle(std::string resource, std::string key);
  // Makes the bytes once the version is known.
  using Render = std::function<std::string(uint64_t version)>;
  Task<Result<ObjectPtr>> put(std::string resource, std::string key, Render render);
  // The bytes must be the last state, with the deletion's version.
  Task<Result<ObjectPtr>> remove(std::string resource, std::string key, Render render);

  // A position in a collection's changes. Starting at a version that is no longer in the history is
  // Expired.
  class Cursor {
   public:
    // The next change, or nullptr when there is none yet. Expired: it fell so far behind that
    // changes are gone. The pointer is good until the caller suspends.
    Result<const Change*> next();
    Task<> changed();  // until there may be one

   private:
    friend class Store;
    std::shared_ptr<Collection> collection_;
    uint64_t position_ = 0;
  };
  Result<Cursor> changes_after(std::string_view resource, uint64_t version);

  // Called for every change, in order, when it becomes visible.
  void on_change(std::function<void(std::string_view resource, const Change&)> listener);

  // Waits until everything that was begun is on disk.
  Task<> close();

 private:
  struct Batch;
  struct Commits;
  Store(Executor executor, StoreOptions options);
  Collection& collection(std::string_view resource);
  const Collection* find(std::string_view resource) const;
  Result<> load();
  Task<Result<ObjectPtr>> write(std::string resource, std::string key, Render render, bool deleted);
  Task<> commit_batches();
  void publish(const std::vector<Write>& writes);
  void trim();

  Executor executor_;
  StoreOptions options_;
  std::unique_ptr<Database> database_;
  std::unique_ptr<Commits> commits_;
  absl::flat_hash_map<std::string, std::shared_ptr<Collection>> collections_;
  std::deque<std::pair<Collection*, size_t>> order_;  // of all changes kept: whose, and their cost
  size_t history_cost_ = 0;
  uint64_t assigned_ = 0;
  uint64_t visible_ = 0;
  uint64_t floor_ = 0;  // versions before it have no history at all
  std::vector<std::function<void(std::string_view, const Change&)>> listeners_;
};

}  // namespace grapnel::local
