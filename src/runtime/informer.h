// Keeps a Cache equal to what the API server holds of one kind. It carries out what watcher.h
// decides: the list is decoded item by item and the watch line by line as the bytes arrive,
// straight into the projection, so that neither a whole list nor a whole object is ever kept.
//
// An object that does not decode is logged once, counted and passed over; the cache keeps the state
// it had. "Synced" means that the whole first list has been delivered to every handler.
#pragma once

#include <absl/container/flat_hash_set.h>

#include <functional>
#include <optional>
#include <string>
#include <utility>

#include "base/async.h"
#include "base/random.h"
#include "document/json_view.h"
#include "kube/client.h"
#include "runtime/cache.h"
#include "runtime/watcher.h"

namespace grapnel::runtime {

struct InformerOptions {
  kube::Kind kind;
  kube::ListOptions filter = {};  // namespace and selectors
  WatcherOptions watcher = {};
};

// All of an informer that does not depend on the type it decodes into.
class InformerBase {
 public:
  InformerBase(kube::Client& client, Clock& clock, Random& random, InformerOptions options);
  InformerBase(const InformerBase&) = delete;
  InformerBase& operator=(const InformerBase&) = delete;
  virtual ~InformerBase() = default;

  Task<> run();  // until it is cancelled

  const kube::Kind& kind() const { return options_.kind; }
  const kube::ListOptions& filter() const { return options_.filter; }
  bool synced() const { return state_.synced; }
  // Why it does not get on, while it does not.
  const std::optional<Error>& trouble() const { return state_.trouble; }
  uint64_t undecodable() const { return undecodable_; }
  void on_synced(std::function<void()> f) { on_synced_ = std::move(f); }
  virtual CacheBase& base_cache() = 0;
  const CacheBase& base_cache() const { return const_cast<InformerBase*>(this)->base_cache(); }

 protected:
  virtual void begin_replace() = 0;
  virtual void finish_replace() = 0;
  virtual Result<> upsert(JsonView object) = 0;
  virtual void erase(const kube::Key& key, const kube::Uid& uid) = 0;
  virtual void keep(const kube::Key& key) = 0;  // it exists, in a state we cannot read
  void doubt(CacheBase::Doubt doubt);

 private:
  Moment moment() { return {.now = clock_.instant(), .random = random_.uniform()}; }
  WatcherStep take(const WatcherInput& input, const JsonView* object = nullptr);
  void begin_replace_for(const WatcherStep& step);
  Task<> wait_for_doubt();
  void store(const WatcherInput& input, JsonView object);
  void pass_over(JsonView object, const Error& error);
  Task<WatcherInput> list(StartList ask);
  Task<WatcherStep> watch(OpenWatch ask);
  Task<> read_watch(OpenWatch ask, WatcherStep& next);
  std::optional<WatcherStep> take_line(std::string_view line);
  void take_item(std::string_view item);

  kube::Client& client_;
  Clock& clock_;
  Random& random_;
  InformerOptions options_;
  WatcherState state_;
  JsonParser parser_;
  uint64_t undecodable_ = 0;
  absl::flat_hash_set<std::string> passed_over_;
  std::function<void()> on_synced_;
  std::optional<Instant> replace_began_;  // of a list of the newest that there is
  std::optional<CacheBase::Doubt> doubt_;
  std::optional<Signal> doubted_;  // while run() is running
};

template <class T>
class Informer final : public InformerBase {
 public:
  using Decode = std::function<Result<T>(JsonView)>;

  Informer(kube::Client& client, Clock& clock, Random& random, InformerOptions options,
           Decode decode)
      : InformerBase(client, clock, random, options),
        cache_(options.kind),
        decode_(std::move(decode)) {
    cache_.on_doubt([this](CacheBase::Doubt what) { doubt(what); });
  }

  Cache<T>& cache() { return cache_; }
  const Cache<T>& cache() const { return cache_; }
  CacheBase& base_cache() override { return cache_; }

 private:
  void begin_replace() override { cache_.begin_replace(); }
  void finish_replace() override { cache_.finish_replace(); }
  Result<> upsert(JsonView object) override {
    auto decoded = decode_(object);
    if (!decoded) return fail(std::move(decoded.error()));
    cache_.update(std::move(*decoded));
    return {};
  }
  void erase(const kube::Key& key, const kube::Uid& uid) override {
    const auto* known = cache_.meta(key);
    if (known != nullptr && (uid.empty() || known->uid == uid)) cache_.remove(key);
  }
  void keep(const kube::Key& key) override { cache_.keep(key); }

  Cache<T> cache_;
  Decode decode_;
};

}  // namespace grapnel::runtime
