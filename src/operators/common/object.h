// Objects that exist: as the target of a write, and as the owner of what a plan makes.
//
//   plan.add(runtime::Delete{.target = operators::ref_to(*job)});
//   metadata["ownerReferences"] = operators::owned_by(jobset);
#pragma once

#include "api/experiment.h"
#include "api/job.h"
#include "api/jobset.h"
#include "api/pod.h"
#include "document/json.h"
#include "kube/kind.h"
#include "runtime/plan.h"

namespace grapnel::operators {

// The kind of an observed object; a line for each type that planners refer to.
template <class T>
inline constexpr const kube::Kind* kKindOf = nullptr;
template <>
inline constexpr const kube::Kind* kKindOf<api::Experiment> = &kube::kinds::kExperiment;
template <>
inline constexpr const kube::Kind* kKindOf<api::Job> = &kube::kinds::kJob;
template <>
inline constexpr const kube::Kind* kKindOf<api::JobSet> = &kube::kinds::kJobSet;
template <>
inline constexpr const kube::Kind* kKindOf<api::Pod> = &kube::kinds::kPod;

// The kind must outlive the reference.
runtime::ObjectRef ref_to(const kube::Kind& kind, const kube::Meta& meta);
// An ownerReference to the controller: its deletion takes what it owns along.
JsonObject owner_reference(const kube::Kind& kind, const kube::Meta& meta);

template <class T>
runtime::ObjectRef ref_to(const T& object) {
  static_assert(kKindOf<T> != nullptr, "kKindOf does not know this type");
  return ref_to(*kKindOf<T>, object.meta);
}

template <class T>
JsonObject owner_reference(const T& object) {
  static_assert(kKindOf<T> != nullptr, "kKindOf does not know this type");
  return owner_reference(*kKindOf<T>, object.meta);
}

// The ownerReferences of what belongs to this object alone.
template <class T>
JsonArray owned_by(const T& object) {
  return {owner_reference(object)};
}

}  // namespace grapnel::operators
