#include <algorithm>

#include "local/builtin/garbage/plan.h"
#include "local/builtin/wiring.h"

namespace grapnel::local {
namespace {

using runtime::Plan;

std::string_view group_of(std::string_view api_version) {
  const size_t slash = api_version.find('/');
  return slash == std::string_view::npos ? "" : api_version.substr(0, slash);
}

bool waits_for_dependents(const kube::Meta& meta) {
  return meta.is_being_deleted() && std::ranges::any_of(meta.finalizers, [](const Interned& f) {
           return f.view() == "foregroundDeletion";
         });
}

OwnerState state_of(const AllObjects& objects, const kube::OwnerReference& owner,
                    const kube::Meta& object) {
  if (objects.was_deleted(owner.uid)) return OwnerState::kAbsent;
  const auto* kind = objects.kind(group_of(owner.api_version), owner.kind);
  if (kind == nullptr) return OwnerState::kPresent;  // nobody can say
  const auto& cache = kind->informer->cache();
  const Interned ns = kind->kind.namespaced ? object.key.ns : Interned();
  const auto found = cache.get({ns, owner.name});
  if (found && found->meta.uid == owner.uid) {
    return waits_for_dependents(found->meta) ? OwnerState::kWaiting : OwnerState::kPresent;
  }
  const bool knows = kind->informer->synced() && cache.last_version() >= object.resource_version;
  return knows ? OwnerState::kAbsent : OwnerState::kUnknown;
}

std::optional<Plan> plan_for(const AllObjects& objects, const kube::Uid& uid) {
  const auto found = objects.by_uid(uid);
  if (!found.object) return std::nullopt;
  const kube::Meta& meta = found.object->meta;
  GarbageObserved observed{.kind = &found.kind->kind, .object = *found.object};
  for (const auto& owner : meta.owners) {
    observed.owners.push_back(state_of(objects, owner, meta));
  }
  const auto dependents = objects.owned_by(uid);
  for (const auto& dependent : dependents) {
    observed.dependents.push_back({&dependent.kind->kind, dependent.object.get()});
  }
  Plan plan = local::plan(observed);
  // An owner must not be deleted while some of its dependents may be unknown.
  if (meta.is_being_deleted() && !plan.empty() && !objects.complete()) {
    plan = {};
    plan.look_again_in(seconds(1));
  }
  return plan;
}

}  // namespace

// One queue for all kinds, by uid.
void add_garbage(runtime::Manager& manager, AllObjects& objects) {
  auto& controller = manager.add_controller(
      {.name = "garbage",
       .kind = &kube::kinds::kPod,
       .plan = [&objects](const kube::Key& key, Time, const runtime::Refusal*) {
         return plan_for(objects, kube::Uid(key.name));
       }});
  objects.on_kind(
      [&controller](AllObjects::Followed& kind) { controller.use(kind.informer->cache()); });
  const auto enqueue = [&controller](const kube::Uid& uid) {
    controller.enqueue({Interned(), uid.text()});
  };
  // A change concerns the object itself, what it owns, and what owns it or did.
  objects.on_change([&objects, enqueue](const AllObjects::Followed&, const AnyObject* before,
                                        const AnyObject* after) {
    const kube::Meta& meta = (after != nullptr ? after : before)->meta;
    if (after != nullptr && (!meta.owners.empty() || !meta.finalizers.empty())) enqueue(meta.uid);
    if (after == nullptr || meta.is_being_deleted()) {
      for (const auto& dependent : objects.owned_by(meta.uid)) enqueue(dependent.object->meta.uid);
    }
    for (const auto* object : {before, after}) {
      if (object == nullptr) continue;
      for (const auto& owner : object->meta.owners) enqueue(owner.uid);
    }
  });
}

}  // namespace grapnel::local
