#include "local/builtin/quota/plan.h"

namespace grapnel::local {
namespace {

JsonObject slim_container(JsonView container) {
  JsonObject slim;
  for (const auto* key : {"name", "resources", "restartPolicy"}) {
    if (const auto value = container.find(key)) slim[key] = value->to_json();
  }
  return slim;
}

JsonObject texts_of(const Usage& usage) {
  JsonObject texts;
  for (const auto& [name, amount] : usage) texts[name] = amount.text();
  return texts;
}

}  // namespace

bool ResourceQuota::operator==(const ResourceQuota& other) const {
  return meta == other.meta && equal(object, other.object);
}

bool QuotaPod::operator==(const QuotaPod& other) const {
  return meta == other.meta && equal(object, other.object);
}

Result<ResourceQuota> decode_resource_quota(JsonView object) {
  auto meta = kube::decode_meta(object);
  if (!meta) return fail(meta.error());
  ResourceQuota quota{.meta = std::move(*meta)};
  JsonObject kept{{"metadata", JsonObject{{"name", quota.meta.name()}}}};
  for (const auto* key : {"spec", "status"}) {
    if (const auto value = object.find(key)) kept[key] = value->to_json();
  }
  quota.object = std::move(kept);
  return quota;
}

Result<QuotaPod> decode_quota_pod(JsonView object) {
  auto meta = kube::decode_meta(object);
  if (!meta) return fail(meta.error());
  JsonObject spec;
  if (const auto given = object.find("spec")) {
    if (const auto deadline = given->find("activeDeadlineSeconds")) {
      spec["activeDeadlineSeconds"] = deadline->to_json();
    }
    for (const auto* key : {"initContainers", "containers"}) {
      const auto list = given->find(key);
      if (!list) continue;
      JsonArray containers;
      list->for_each_element([&](size_t, JsonView container) {
        containers.push_back(slim_container(container));
        return true;
      });
      spec[key] = std::move(containers);
    }
  }
  const auto status = object.find("status");
  const auto phase = status ? status->find("phase") : std::nullopt;
  return QuotaPod{
      std::move(*meta),
      JsonObject{{"spec", std::move(spec)},
                 {"status", JsonObject{{"phase", phase ? phase->as_string().value_or("") : ""}}}}};
}

runtime::Plan plan(const QuotaObserved& o) {
  runtime::Plan plan;
  if (o.quota.meta.is_being_deleted()) return plan;
  const Quota quota = Quota::from_json(o.quota.object);
  Usage used;
  for (const auto& [name, amount] : quota.hard) used[name] = Quantity();
  if (quota.scopes.empty()) add(used, quota.limited(o.counted));
  for (const auto* pod : o.pods) {
    if (quota.covers(pod->object, "pods")) {
      add(used, quota.limited(usage_of(pod->object, "", "pods")));
    }
  }
  const Json* status = find(o.quota.object, "status");
  plan.set_status({&kube::kinds::kResourceQuota, o.quota.meta.key, o.quota.meta.uid},
                  status == nullptr ? Json(JsonObject()) : *status,
                  JsonObject{{"hard", texts_of(quota.hard)}, {"used", texts_of(used)}});
  return plan;
}

}  // namespace grapnel::local
