#include "local/builtin/garbage/plan.h"

#include <algorithm>

namespace grapnel::local {
namespace {

using runtime::Delete;
using runtime::ObjectRef;
using runtime::Patch;
using runtime::Plan;

constexpr std::string_view kForeground = "foregroundDeletion";
constexpr std::string_view kOrphan = "orphan";
// For a kind without changes, only bookmarks tell the version.
constexpr seconds kLookAgain{1};

ObjectRef ref(const kube::Kind* kind, const kube::Meta& meta) {
  return {kind, meta.key, meta.uid};
}

bool has_finalizer(const kube::Meta& meta, std::string_view name) {
  return std::ranges::any_of(meta.finalizers, [&](const Interned& f) { return f.view() == name; });
}

Patch without_finalizer(const GarbageObserved& o, std::string_view name) {
  const kube::Meta& meta = o.object.meta;
  JsonArray others;
  for (const auto& finalizer : meta.finalizers) {
    if (finalizer.view() != name) others.emplace_back(finalizer.view());
  }
  return {.target = ref(o.kind, meta),
          .body = JsonObject{{"metadata", JsonObject{{"finalizers", std::move(others)}}}},
          .if_version = meta.resource_version};
}

bool blocks(const AnyObject& object, const kube::Uid& owner) {
  return std::ranges::find(object.blocks, owner) != object.blocks.end();
}

// The object without the owners that `gone` says.
template <class Gone>
Patch without_owners(const kube::Kind* kind, const AnyObject& object, Gone gone) {
  JsonArray kept;
  for (size_t i = 0; i < object.meta.owners.size(); ++i) {
    const auto& owner = object.meta.owners[i];
    if (gone(i, owner)) continue;
    JsonObject entry{{"apiVersion", owner.api_version.view()},
                     {"kind", owner.kind.view()},
                     {"name", owner.name},
                     {"uid", owner.uid.text()}};
    if (owner.controller) entry["controller"] = true;
    if (blocks(object, owner.uid)) entry["blockOwnerDeletion"] = true;
    kept.push_back(std::move(entry));
  }
  return {.target = ref(kind, object.meta),
          .body = JsonObject{{"metadata", JsonObject{{"ownerReferences", std::move(kept)}}}},
          .if_version = object.meta.resource_version};
}

// Only dependents that ask for it hold up the deletion of their owner. A dependent with other
// owners is not deleted here: it loses this owner when it is its own turn.
Plan delete_dependents_first(const GarbageObserved& o) {
  Plan plan;
  bool waits = false;
  for (const auto& [kind, object] : o.dependents) {
    waits = waits || blocks(*object, o.object.meta.uid);
    if (!object->meta.is_being_deleted() && object->meta.owners.size() == 1) {
      plan.add(Delete{ref(kind, object->meta), Delete::Propagation::kForeground});
    }
  }
  if (!waits) {
    plan.then();
    plan.add(without_finalizer(o, kForeground));
  }
  return plan;
}

Plan set_dependents_free(const GarbageObserved& o) {
  Plan plan;
  for (const auto& [kind, object] : o.dependents) {
    plan.add(without_owners(
        kind, *object, [&](size_t, const auto& owner) { return owner.uid == o.object.meta.uid; }));
  }
  if (o.dependents.empty()) plan.add(without_finalizer(o, kOrphan));
  return plan;
}

}  // namespace

Plan plan(const GarbageObserved& o) {
  const kube::Meta& meta = o.object.meta;
  if (meta.is_being_deleted()) {
    if (has_finalizer(meta, kOrphan)) return set_dependents_free(o);
    if (has_finalizer(meta, kForeground)) return delete_dependents_first(o);
    return {};
  }
  Plan plan;
  if (o.owners.empty()) return plan;
  const auto count = [&](OwnerState state) { return std::ranges::count(o.owners, state); };
  if (count(OwnerState::kUnknown) > 0) {
    plan.look_again_in(kLookAgain);
  } else if (count(OwnerState::kPresent) == 0) {
    // If an owner waits for us, our own dependents are deleted before us.
    const bool waited_for = count(OwnerState::kWaiting) > 0;
    plan.add(Delete{ref(o.kind, meta), waited_for ? Delete::Propagation::kForeground
                                                  : Delete::Propagation::kBackground});
  } else if (count(OwnerState::kPresent) < static_cast<std::ptrdiff_t>(o.owners.size())) {
    plan.add(without_owners(o.kind, o.object, [&](size_t i, const auto&) {
      return o.owners[i] != OwnerState::kPresent;
    }));
  }
  return plan;
}

}  // namespace grapnel::local
