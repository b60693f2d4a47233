// Follows one kind, in one namespace or all, with one pair of selectors: carries out what watcher.h
// decides, and hands what comes to every projection that has joined. The list is read item by item
// and the watch line by line as the bytes arrive; each object is parsed once and then decoded by
// each projection, so that neither a whole list nor a whole object is ever kept.
//
// An object that a projection cannot decode is logged once, counted and passed over; that
// projection keeps the state it had. "Synced" means that the whole first list has been delivered to
// every handler of every projection.
#pragma once

#include <absl/container/flat_hash_set.h>

#include <optional>
#include <string>
#include <vector>

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

// What a Reflector fills.
class Projection {
 public:
  virtual ~Projection() = default;
  virtual CacheBase& base_cache() = 0;
  const CacheBase& base_cache() const { return const_cast<Projection*>(this)->base_cache(); }
  virtual void begin_replace() = 0;
  virtual void finish_replace() = 0;
  virtual Result<> upsert(JsonView object) = 0;
  virtual void erase(const kube::Key& key, const kube::Uid& uid) = 0;
  virtual void keep(const kube::Key& key) = 0;  // it exists, in a state we cannot read
  virtual void note_change() = 0;               // synced, or no longer, or not defined
};

// Namespace and name of any object, even one that does not decode.
kube::Key key_of(JsonView object);

class Reflector {
 public:
  Reflector(kube::Client& client, Clock& clock, Random& random, InformerOptions options);
  Reflector(const Reflector&) = delete;
  Reflector& operator=(const Reflector&) = delete;

  // Before run(). They are served in the order in which they came; each must live as long as this.
  void add(Projection& projection);
  Task<> run();  // until it is cancelled

  const kube::Kind& kind() const { return options_.kind; }
  const kube::ListOptions& filter() const { return options_.filter; }
  // Whether one that asks for this can join.
  bool follows(const InformerOptions& options) const;
  const std::vector<Projection*>& projections() const { return projections_; }
  bool synced() const { return state_.synced; }
  bool missing() const { return state_.missing; }
  const std::optional<Error>& trouble() const { return state_.trouble; }
  uint64_t undecodable() const { return undecodable_; }
  size_t objects() const;  // in the largest projection

 private:
  Moment moment() { return {.now = clock_.instant(), .random = random_.uniform()}; }
  WatcherStep take(const WatcherInput& input, const JsonView* object = nullptr);
  void begin_replace_for(const WatcherStep& step);
  void finish_replace();
  void doubt(CacheBase::Doubt doubt);
  Task<> wait_for_doubt();
  void store(const WatcherInput& input, JsonView object);
  void upsert(JsonView object);
  void pass_over(const kube::Key& key, const Error& error);
  Task<WatcherInput> list(StartList ask);
  Task<WatcherStep> watch(OpenWatch ask);
  Task<> read_watch(OpenWatch ask, WatcherStep& next);
  std::optional<WatcherStep> take_line(std::string_view line);
  void take_item(std::string_view item);

  kube::Client& client_;
  Clock& clock_;
  Random& random_;
  InformerOptions options_;
  std::vector<Projection*> projections_;
  WatcherState state_;
  JsonParser parser_;
  uint64_t undecodable_ = 0;
  absl::flat_hash_set<std::string> passed_over_;
  std::optional<Instant> replace_began_;  // of a list of the newest that there is
  std::optional<CacheBase::Doubt> doubt_;
  std::optional<Signal> doubted_;  // while run() is running
};

}  // namespace grapnel::runtime
