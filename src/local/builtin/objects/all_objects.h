// The metadata of all objects of all kinds that the server serves, whoever defined them. Garbage
// collection and the deletion of namespaces and definitions read it.
//
// Kinds come and go with definitions; call look_again() when some may have. The object must outlive
// run().
#pragma once

#include <absl/container/flat_hash_set.h>

#include <deque>
#include <functional>
#include <memory>
#include <string_view>
#include <vector>

#include "base/async.h"
#include "base/random.h"
#include "kube/client.h"
#include "runtime/informer.h"

namespace grapnel::local {

struct AnyObject {
  kube::Meta meta;
  // Owners whose deletion it holds up (blockOwnerDeletion).
  absl::InlinedVector<kube::Uid, 1> blocks;
  bool operator==(const AnyObject&) const = default;
};
Result<AnyObject> decode_any_object(JsonView object);

class AllObjects {
 public:
  struct Followed {
    kube::Kind kind;
    std::unique_ptr<runtime::Informer<AnyObject>> informer;
    Spawned watch;
    bool served = true;
  };
  // One object, and its kind.
  struct Found {
    const Followed* kind = nullptr;
    std::shared_ptr<const AnyObject> object;
  };
  using Handler =
      std::function<void(const Followed&, const AnyObject* before, const AnyObject* after)>;

  AllObjects(Executor executor, kube::Client& client, Clock& clock, Random& random);

  // Set both before run(). Kinds are reported before their objects.
  void on_kind(std::function<void(Followed&)> f) { kind_handlers_.push_back(std::move(f)); }
  void on_change(Handler f) { handlers_.push_back(std::move(f)); }

  Task<> run();  // until it is cancelled; then end()
  Task<> end();
  void look_again();

  // Every kind is known, and all its objects.
  bool complete() const;
  const Followed* kind(std::string_view group, std::string_view kind) const;
  std::vector<Found> owned_by(const kube::Uid& owner) const;
  std::vector<Found> in_namespace(std::string_view ns) const;
  std::vector<Found> of_kind(const Followed& kind) const;
  Found by_uid(const kube::Uid& uid) const;
  // It existed, and was deleted not long ago.
  bool was_deleted(const kube::Uid& uid) const { return gone_.contains(uid); }

 private:
  std::vector<Found> indexed(std::string_view index, const std::string& value) const;
  Task<Result<std::vector<kube::Kind>>> discover();
  Task<Result<std::vector<kube::Kind>>> discover(std::string path);
  void follow(const std::vector<kube::Kind>& kinds);
  void add(const kube::Kind& kind);
  void note(const Followed& kind, const AnyObject* before, const AnyObject* after);

  Executor executor_;
  kube::Client& client_;
  Clock& clock_;
  Random& random_;
  Signal changed_;
  bool out_of_date_ = true;
  std::vector<std::unique_ptr<Followed>> kinds_;
  absl::flat_hash_set<kube::Uid> gone_;
  std::deque<kube::Uid> gone_in_order_;
  std::vector<std::function<void(Followed&)>> kind_handlers_;
  std::vector<Handler> handlers_;
};

}  // namespace grapnel::local
