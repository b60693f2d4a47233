// Objects that exist: as the target of a write, and as the owner of what a plan makes.
//
//   plan.add(runtime::Delete{.target = operators::ref_to(*job)});
//   metadata["ownerReferences"] = operators::owned_by(jobset);
#pragma once

#include "api/describe.h"
#include "api/job.h"
#include "api/pod.h"
#include "document/json.h"
#include "kube/kind.h"
#include "runtime/plan.h"

namespace grapnel::operators {

// The kinds of the projections of built-in objects. Our own kinds say it themselves.
template <class T>
inline constexpr const kube::Kind* kBuiltinKind = nullptr;
template <>
inline constexpr const kube::Kind* kBuiltinKind<api::Job> = &kube::kinds::kJob;
template <>
inline constexpr const kube::Kind* kBuiltinKind<api::Pod> = &kube::kinds::kPod;

template <class T>
const kube::Kind& kind_of() {
  if constexpr (kBuiltinKind<T> != nullptr) {
    return *kBuiltinKind<T>;
  } else {
    static const kube::Kind kind = api::Resource<T>::info().kind;
    return kind;
  }
}

// The kind must outlive the reference.
runtime::ObjectRef ref_to(const kube::Kind& kind, const kube::Meta& meta);
// An ownerReference to the controller: its deletion takes what it owns along.
JsonObject owner_reference(const kube::Kind& kind, const kube::Meta& meta);

template <class T>
runtime::ObjectRef ref_to(const T& object) {
  return ref_to(kind_of<T>(), object.meta);
}

template <class T>
JsonObject owner_reference(const T& object) {
  return owner_reference(kind_of<T>(), object.meta);
}

// The ownerReferences of what belongs to this object alone.
template <class T>
JsonArray owned_by(const T& object) {
  return {owner_reference(object)};
}

}  // namespace grapnel::operators
