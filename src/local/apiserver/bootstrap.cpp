#include "local/apiserver/bootstrap.h"

#include "base/log.h"
#include "local/apiserver/crd.h"
#include "local/apiserver/write.h"

namespace grapnel::local {
namespace {

constexpr const char* kDefinitions = "customresourcedefinitions.apiextensions.k8s.io";

constexpr std::string_view kWebhooks = "webhookconfigurations.admissionregistration.k8s.io";
constexpr const char* kMutating = "mutatingwebhookconfigurations.admissionregistration.k8s.io";
constexpr const char* kValidating = "validatingwebhookconfigurations.admissionregistration.k8s.io";

// The objects of a definition go with it.
Task<> remove_all(Api& api, std::string collection) {
  const auto page = api.store.list(collection, {});
  if (!page) co_return;
  for (const ObjectPtr& item : page->items) {
    auto json = parse_json(item->json);
    if (!json) continue;
    auto last = std::make_shared<Json>(std::move(*json));
    co_await api.store.settle(collection, item->key);
    if (!api.store.get(collection, item->key)) continue;
    auto gone = co_await api.store.remove(collection, item->key, [last](uint64_t version) {
      last->as_object()["metadata"].as_object()["resourceVersion"] = std::to_string(version);
      return to_text(*last);
    });
    if (!gone) log_warning("an object outlives its definition", {{"key", item->key}});
  }
}

void note(Api& api, std::string_view resource, const Object& object, bool deleted) {
  const bool webhooks = resource.ends_with(kWebhooks);
  if (resource != kDefinitions && resource != "services" && !webhooks) return;
  const auto json = parse_json(object.json);
  if (!json) return;
  if (resource == "services") {
    deleted ? api.services.release(*json) : api.services.occupy(*json);
  } else if (webhooks) {
    api.webhooks.set(resource, object.key, deleted ? nullptr : &*json);
  } else {
    api.registry.set_custom(object.key,
                            deleted ? std::vector<TypePtr>{} : types_of_definition(*json));
    std::erase_if(api.tasks, [](const Spawned& task) { return task.done(); });
    if (deleted) api.tasks.push_back(spawn(api.executor, remove_all(api, object.key)));
  }
}

Task<Result<>> ensure(Api& api, std::string group, std::string plural, std::string ns,
                      Json object) {
  Call call;
  call.type = api.registry.find(group, "v1", plural);
  // A server that starts again has them already.
  const std::string key = key_of(ns, string_or(at(object, "metadata", "name")));
  if (api.store.get(call.type->collection(), key)) co_return Result<>();
  auto written = co_await write_new(api, call, std::move(ns), std::move(object));
  if (!written && written.error().code != 409) {
    co_return fail(Reason::kInternalError, "{}", written.error().message);
  }
  co_return Result<>();
}

Json named(std::string_view name) {
  return JsonObject{{"metadata", JsonObject{{"name", name}}}};
}

Json api_service(const Api& api, uint16_t port) {
  return JsonObject{
      {"metadata",
       JsonObject{{"name", "kubernetes"},
                  {"labels", JsonObject{{"component", "apiserver"}, {"provider", "kubernetes"}}}}},
      {"spec",
       JsonObject{{"clusterIP", api.services.api_address()},
                  {"ports", JsonArray{JsonObject{
                                {"name", "https"}, {"port", 443}, {"targetPort", port}}}}}}};
}

}  // namespace

void follow_store(Api& api) {
  for (const char* resource : {kDefinitions, "services", kMutating, kValidating}) {
    const auto page = api.store.list(resource, {});
    if (!page) continue;
    for (const ObjectPtr& item : page->items) note(api, resource, *item, false);
  }
  api.store.on_change([&api](std::string_view resource, const Change& change) {
    note(api, resource, *change.object, change.deleted);
  });
}

Task<> create_default_account(Api& api, std::string ns) {
  auto done = co_await ensure(api, "", "serviceaccounts", ns, named("default"));
  if (!done) log_warning("no default service account", {{"namespace", ns}});
}

Task<Result<>> create_first_objects(Api& api, uint16_t port) {
  for (const char* name : {"default", "kube-system", "kube-public", "kube-node-lease"}) {
    auto done = co_await ensure(api, "", "namespaces", "", named(name));
    if (!done) co_return done;
    co_await create_default_account(api, name);
  }
  for (const auto& [name, value] : {std::pair("system-node-critical", 2000001000),
                                    std::pair("system-cluster-critical", 2000000000)}) {
    Json critical = named(name);
    critical.as_object()["value"] = value;
    auto done =
        co_await ensure(api, "scheduling.k8s.io", "priorityclasses", "", std::move(critical));
    if (!done) co_return done;
  }
  co_return co_await ensure(api, "", "services", "default", api_service(api, port));
}

}  // namespace grapnel::local
