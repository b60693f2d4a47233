#include "local/builtin/definitions/plan.h"

#include <algorithm>

namespace grapnel::local {
namespace {

constexpr std::string_view kFinalizer = "customresourcecleanup.apiextensions.k8s.io";
constexpr seconds kLookAgain{1};

}  // namespace

runtime::Plan plan(const DefinitionObserved& o) {
  runtime::Plan plan;
  const auto is_ours = [](const Interned& finalizer) { return finalizer.view() == kFinalizer; };
  if (!o.meta.is_being_deleted() || std::ranges::none_of(o.meta.finalizers, is_ours)) return plan;
  if (!o.knows_all) {
    plan.look_again_in(kLookAgain);
    return plan;
  }
  for (const auto* object : o.objects) {
    if (!object->is_being_deleted()) {
      plan.add(runtime::Delete{{o.kind, object->key, object->uid}});
    }
  }
  if (!o.objects.empty()) return plan;
  JsonArray others;
  for (const auto& finalizer : o.meta.finalizers) {
    if (!is_ours(finalizer)) others.emplace_back(finalizer.view());
  }
  plan.add(runtime::Patch{
      .target = {&kube::kinds::kCustomResourceDefinition, o.meta.key, o.meta.uid},
      .body = JsonObject{{"metadata", JsonObject{{"finalizers", std::move(others)}}}},
      .if_version = o.meta.resource_version});
  return plan;
}

}  // namespace grapnel::local
