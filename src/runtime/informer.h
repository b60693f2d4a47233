// One projection of a kind: a Cache that a Reflector keeps equal to what the API server holds, as
// far as its decoder reads it. Several informers of a kind can share a Reflector: one watch, and
// each object is parsed once.
//
// A decoder that answers with nothing does not want the object: it is not in the cache, and leaves
// it if it was there.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <utility>

#include "runtime/reflector.h"

namespace grapnel::runtime {

// All of an informer that does not depend on the type it decodes into.
class InformerBase : public Projection {
 public:
  explicit InformerBase(std::shared_ptr<Reflector> reflector) : reflector_(std::move(reflector)) {}
  InformerBase(const InformerBase&) = delete;
  InformerBase& operator=(const InformerBase&) = delete;

  Task<> run() { return reflector_->run(); }  // once for all that share a Reflector

  const Reflector& reflector() const { return *reflector_; }
  const kube::Kind& kind() const { return reflector_->kind(); }
  const kube::ListOptions& filter() const { return reflector_->filter(); }
  bool synced() const { return reflector_->synced(); }
  bool was_synced() const { return was_synced_; }
  // The server has no such kind. The cache keeps what it had, and is synced again some time after
  // the definition has come.
  bool missing() const { return reflector_->missing(); }
  // Why it does not get on, while it does not.
  const std::optional<Error>& trouble() const { return reflector_->trouble(); }
  uint64_t undecodable() const { return reflector_->undecodable(); }
  // The first list is in, or the first after the definition was missing.
  void on_synced(std::function<void()> f) { on_synced_ = std::move(f); }
  // synced() or missing() has changed.
  void on_change(std::function<void()> f) { on_change_ = std::move(f); }

 protected:
  void join() { reflector_->add(*this); }

 private:
  void note_change() override {
    if (synced()) was_synced_ = true;
    if (synced() && on_synced_) on_synced_();
    if (on_change_) on_change_();
  }

  std::shared_ptr<Reflector> reflector_;
  bool was_synced_ = false;
  std::function<void()> on_synced_;
  std::function<void()> on_change_;
};

template <class T>
class Informer final : public InformerBase {
 public:
  using Decode = std::function<Result<std::optional<T>>(JsonView)>;

  Informer(std::shared_ptr<Reflector> reflector, Decode decode)
      : InformerBase(std::move(reflector)), cache_(kind()), decode_(std::move(decode)) {
    join();
  }
  // With a Reflector of its own.
  Informer(kube::Client& client, Clock& clock, Random& random, InformerOptions options,
           Decode decode)
      : Informer(std::make_shared<Reflector>(client, clock, random, std::move(options)),
                 std::move(decode)) {}

  Cache<T>& cache() { return cache_; }
  const Cache<T>& cache() const { return cache_; }
  CacheBase& base_cache() override { return cache_; }

 private:
  void begin_replace() override { cache_.begin_replace(); }
  void finish_replace() override { cache_.finish_replace(); }
  Result<> upsert(JsonView object) override {
    auto decoded = decode_(object);
    if (!decoded) return fail(std::move(decoded.error()));
    if (*decoded) {
      cache_.update(std::move(**decoded));
    } else {
      cache_.remove(key_of(object));
    }
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
