#include "local/apiserver/pod_priority.h"

#include <fmt/format.h>

#include "local/apiserver/fields.h"
#include "local/apiserver/kinds/kinds.h"

namespace grapnel::local {
namespace {

constexpr const char* kClasses = "priorityclasses.scheduling.k8s.io";

// The class that pods without one get; null: there is none.
Json default_class(const Api& api) {
  const auto page = api.store.list(kClasses, {});
  if (!page) return {};
  for (const ObjectPtr& item : page->items) {
    auto found = parse_json(item->json);
    if (found && bool_or(find(*found, "globalDefault"))) return std::move(*found);
  }
  return {};
}

}  // namespace

Answer<> set_priority(const Api& api, JsonObject& pod) {
  const std::string pod_name(string_or(at_in(pod, "metadata", "name")));
  const auto refuse = [&pod_name](const std::string& why) {
    return Refusal(forbidden({"", "pods"}, pod_name, why));
  };
  JsonObject& spec = ensure_object(pod, "spec");
  const std::string name(string_or(spec.if_contains("priorityClassName")));
  Json chosen;
  if (name.empty()) {
    chosen = default_class(api);
    if (!chosen.is_null()) spec["priorityClassName"] = *at(chosen, "metadata", "name");
  } else {
    const ObjectPtr stored = api.store.get(kClasses, name);
    if (!stored) return refuse(fmt::format("no PriorityClass with name {} was found", name));
    auto parsed = parse_json(stored->json);
    if (parsed) chosen = std::move(*parsed);
  }
  const int64_t priority = chosen.is_null() ? 0 : int_or(find(chosen, "value"));
  if (const Json* given = spec.if_contains("priority");
      kinds::is_set(given) && int_or(given) != priority) {
    return refuse(
        fmt::format("the integer value of priority ({}) must not be provided in pod "
                    "spec; priority admission controller computed {} from the given "
                    "PriorityClass name",
                    int_or(given), priority));
  }
  spec["priority"] = priority;
  const std::string_view policy =
      chosen.is_null() ? "" : string_or(find(chosen, "preemptionPolicy"));
  kinds::set_default(spec, "preemptionPolicy",
                     Json(policy.empty() ? "PreemptLowerPriority" : policy));
  return {};
}

}  // namespace grapnel::local
