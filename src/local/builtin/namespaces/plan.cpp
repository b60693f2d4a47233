#include "local/builtin/namespaces/plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

namespace grapnel::local {
namespace {

using runtime::Plan;

constexpr std::string_view kFinalizer = "kubernetes";
constexpr std::string_view kCertificate = "kube-root-ca.crt";
constexpr seconds kLookAgain{1};

runtime::ObjectRef ref(const Namespace& ns) {
  return {&kube::kinds::kNamespace, ns.meta.key, ns.meta.uid};
}

struct Condition {
  std::string_view type;
  bool status = false;
  std::string_view reason;
  std::string message;
};

// The time is that of the last change of the condition's status.
JsonObject with_conditions(const Json& before, const std::vector<Condition>& conditions, Time now) {
  JsonArray list;
  for (const auto& condition : conditions) {
    const std::string_view status = condition.status ? "True" : "False";
    std::string since = format_time(now);
    if (const Json* old = find(before, "conditions"); old != nullptr && old->is_array()) {
      for (const Json& one : old->as_array()) {
        if (string_or(find(one, "type")) == condition.type &&
            string_or(find(one, "status")) == status) {
          since = string_or(find(one, "lastTransitionTime"));
        }
      }
    }
    list.push_back({{"type", condition.type},
                    {"status", status},
                    {"lastTransitionTime", since},
                    {"reason", condition.reason},
                    {"message", condition.message}});
  }
  return {{"phase", "Terminating"}, {"conditions", std::move(list)}};
}

Condition remaining(const NamespaceObserved& o) {
  if (o.content.empty()) {
    return {"NamespaceContentRemaining", false, "ContentRemoved",
            "All content successfully removed"};
  }
  std::map<std::string, int> counts;
  for (const auto& one : o.content) {
    ++counts[fmt::format("{}.{}", one.kind->plural, one.kind->group)];
  }
  std::vector<std::string> parts;
  for (const auto& [resource, count] : counts) {
    parts.push_back(fmt::format("{} has {} resource instances", resource, count));
  }
  return {"NamespaceContentRemaining", true, "SomeResourcesRemain",
          fmt::format("Some resources are remaining: {}", fmt::join(parts, ", "))};
}

Condition finalizers_remaining(const NamespaceObserved& o) {
  std::map<std::string_view, int> counts;
  for (const auto& one : o.content) {
    for (const auto& finalizer : one.meta->finalizers) ++counts[finalizer.view()];
  }
  if (counts.empty()) {
    return {"NamespaceFinalizersRemaining", false, "ContentHasNoFinalizers",
            "All content-preserving finalizers finished"};
  }
  std::vector<std::string> parts;
  for (const auto& [finalizer, count] : counts) {
    parts.push_back(fmt::format("{} in {} resource instances", finalizer, count));
  }
  return {"NamespaceFinalizersRemaining", true, "SomeFinalizersRemain",
          fmt::format("Some content in the namespace has finalizers remaining: {}",
                      fmt::join(parts, ", "))};
}

Json finalized(const Namespace& ns) {
  JsonArray others;
  for (const auto& finalizer : ns.finalizers) {
    if (finalizer != kFinalizer) others.emplace_back(finalizer);
  }
  return JsonObject{{"apiVersion", "v1"},
                    {"kind", "Namespace"},
                    {"metadata", JsonObject{{"name", ns.meta.name()}, {"uid", ns.meta.uid.text()}}},
                    {"spec", JsonObject{{"finalizers", std::move(others)}}}};
}

}  // namespace

bool Namespace::operator==(const Namespace& other) const {
  return meta == other.meta && finalizers == other.finalizers && equal(status, other.status);
}

Result<Namespace> decode_namespace(JsonView object) {
  auto meta = kube::decode_meta(object);
  if (!meta) return fail(meta.error());
  Namespace ns{.meta = std::move(*meta)};
  const auto spec = object.find("spec");
  if (const auto list = spec ? spec->find("finalizers") : std::nullopt) {
    list->for_each_element([&](size_t, JsonView one) {
      ns.finalizers.emplace_back(one.as_string().value_or(""));
      return true;
    });
  }
  if (const auto status = object.find("status")) ns.status = status->to_json();
  return ns;
}

NamespacePlan plan(const NamespaceObserved& o, Time now) {
  NamespacePlan answer;
  Plan& plan = answer.plan;
  if (!o.ns.meta.is_being_deleted() ||
      std::ranges::find(o.ns.finalizers, kFinalizer) == o.ns.finalizers.end()) {
    return answer;
  }
  if (!o.knows_all) {
    plan.look_again_in(kLookAgain);
    return answer;
  }
  if (o.content.empty()) {
    answer.finalized = finalized(o.ns);
    return answer;
  }
  for (const auto& one : o.content) {
    if (!one.meta->is_being_deleted()) {
      plan.add(runtime::Delete{{one.kind, one.meta->key, one.meta->uid}});
    }
  }
  const std::vector<Condition> conditions{
      {"NamespaceDeletionDiscoveryFailure", false, "ResourcesDiscovered",
       "All resources successfully discovered"},
      {"NamespaceDeletionGroupVersionParsingFailure", false, "ParsedGroupVersions",
       "All legacy kube types successfully parsed"},
      {"NamespaceDeletionContentFailure", false, "ContentDeleted",
       "All content successfully deleted, may be waiting on finalization"},
      remaining(o),
      finalizers_remaining(o)};
  plan.set_status(ref(o.ns), o.ns.status, with_conditions(o.ns.status, conditions, now));
  return answer;
}

Plan plan(const NamespaceFurniture& o, const std::string& authority_pem) {
  Plan plan;
  if (o.ns.meta.is_being_deleted()) return plan;
  const auto named = [&](std::string_view name) {
    return JsonObject{{"name", name}, {"namespace", o.ns.meta.name()}};
  };
  if (!o.has_account) {
    plan.add(
        runtime::Create{&kube::kinds::kServiceAccount, JsonObject{{"metadata", named("default")}}});
  }
  if (!o.certificate) {
    JsonObject metadata = named(kCertificate);
    metadata["annotations"] = JsonObject{
        {"kubernetes.io/description",
         "Contains a CA bundle that can be used to verify the kube-apiserver when using internal "
         "endpoints such as the internal service IP or kubernetes.default.svc. No other usage is "
         "guaranteed across distributions of Kubernetes clusters."}};
    plan.add(runtime::Create{&kube::kinds::kConfigMap,
                             JsonObject{{"metadata", std::move(metadata)},
                                        {"data", JsonObject{{"ca.crt", authority_pem}}}}});
  } else if (*o.certificate != authority_pem) {
    plan.add(runtime::Patch{.target = {&kube::kinds::kConfigMap,
                                       {Interned(o.ns.meta.name()), std::string(kCertificate)},
                                       o.certificate_uid},
                            .body = JsonObject{{"data", JsonObject{{"ca.crt", authority_pem}}}}});
  }
  return plan;
}

}  // namespace grapnel::local
