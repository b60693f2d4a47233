#include "local/builtin/quota/plan.h"
#include "local/builtin/wiring.h"

namespace grapnel::local {

namespace kinds = kube::kinds;
using runtime::Plan;

void add_quotas(runtime::Manager& manager, AllObjects& objects) {
  auto& quotas =
      manager.add_informer<ResourceQuota>({.kind = kinds::kResourceQuota}, decode_resource_quota);
  auto& pods = manager.add_informer<QuotaPod>({.kind = kinds::kPod}, decode_quota_pod);
  const auto by_namespace = [](const auto& object) {
    return std::vector{std::string(object.meta.ns())};
  };
  quotas.cache().add_index("namespace", by_namespace);
  pods.cache().add_index("namespace", by_namespace);
  auto plan = [&](const kube::Key& key, Time, const runtime::Refusal*) -> std::optional<Plan> {
    const auto quota = quotas.cache().get(key);
    if (!quota) return std::nullopt;
    QuotaObserved observed{.quota = *quota};
    const auto near = pods.cache().indexed("namespace", key.ns.str());
    for (const auto& pod : near) observed.pods.push_back(pod.get());
    for (const auto& [kind, object] : objects.in_namespace(key.ns.view())) {
      if (kind->kind == kinds::kPod) continue;
      add(observed.counted, usage_of(JsonObject(), kind->kind.group, kind->kind.plural));
    }
    return local::plan(observed);
  };
  auto& controller = manager.add_controller(
      {.name = "resourcequota", .kind = &kinds::kResourceQuota, .plan = std::move(plan)});
  manager.watch(quotas, controller);
  const auto enqueue_all = [&quotas, &controller](const kube::Key& changed) {
    for (const auto& quota : quotas.cache().indexed("namespace", changed.ns.str())) {
      controller.enqueue(quota->meta.key);
    }
  };
  controller.use(pods.cache());
  pods.cache().add_handler([enqueue_all](const QuotaPod* before, const QuotaPod* after) {
    enqueue_all((after != nullptr ? after : before)->meta.key);
  });
  // Of other kinds only the number counts.
  objects.on_change(
      [enqueue_all](const AllObjects::Followed&, const AnyObject* before, const AnyObject* after) {
        if (before == nullptr || after == nullptr) {
          enqueue_all((after != nullptr ? after : before)->meta.key);
        }
      });
}

}  // namespace grapnel::local
