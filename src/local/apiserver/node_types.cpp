#include "local/apiserver/node_types.h"

#include <map>

#include "local/apiserver/selection.h"
#include "local/apiserver/table.h"
#include "local/apiserver/write.h"

namespace grapnel::local {
namespace {

Json metrics_of(const Json& pod, const PodUsage& usage) {
  JsonObject meta{
      {"name", usage.pod}, {"namespace", usage.ns}, {"creationTimestamp", format_time(usage.at)}};
  if (const Json* labels = at(pod, "metadata", "labels")) meta["labels"] = *labels;
  JsonArray containers;
  Duration window{};
  for (const auto& container : usage.containers) {
    containers.push_back(
        JsonObject{{"name", container.name},
                   {"usage", JsonObject{{"cpu", fmt::format("{}n", container.nanocores)},
                                        {"memory", fmt::format("{}Ki", container.bytes / 1024)}}}});
    window = std::max(window, container.window);
  }
  return JsonObject{{"kind", "PodMetrics"},
                    {"apiVersion", "metrics.k8s.io/v1beta1"},
                    {"metadata", std::move(meta)},
                    {"timestamp", format_time(usage.at)},
                    {"window", fmt::format("{}ms", duration_cast<milliseconds>(window).count())},
                    {"containers", std::move(containers)}};
}

std::string list_text(const Api& api, const Call& call, const std::vector<Json>& items) {
  if (call.accepted.form == Form::kTable) {
    return to_text(table_of(*call.type, items, TableOptions::from(call, api.clock.now())));
  }
  return to_text(JsonObject{{"kind", call.type->list_kind()},
                            {"apiVersion", call.type->api_version()},
                            {"metadata", JsonObject{}},
                            {"items", JsonArray(items.begin(), items.end())}});
}

ResourceType type_of(std::string_view group, std::string_view version, std::string_view kind,
                     std::string_view plural, std::vector<std::string> verbs) {
  ResourceType type;
  type.group = group;
  type.version = version;
  type.kind = kind;
  type.plural = plural;
  type.verbs = std::move(verbs);
  type.stored = false;
  return type;
}

Answer<Reply> list_kept_logs(Api& api, Call& call) {
  const auto labels = Selector::parse_labels(call.query("labelSelector"));
  if (!labels) return Refusal(bad_request(labels.error().message));
  std::vector<Json> items;
  for (Json& pod : api.pods->kept_logs()) {
    const bool of_namespace =
        call.info.ns.empty() || string_or(at(pod, "metadata", "namespace")) == call.info.ns;
    const Json* set = at(pod, "metadata", "labels");
    const JsonObject* known = set != nullptr && set->is_object() ? &set->as_object() : nullptr;
    if (!of_namespace || !labels->matches(known)) continue;
    pod.as_object()["kind"] = call.type->kind;
    pod.as_object()["apiVersion"] = call.type->api_version();
    items.push_back(std::move(pod));
  }
  return Reply{.body = list_text(api, call, items)};
}

Task<Answer<Reply>> read_pod_metrics(Api& api, Call& call) {
  const bool one = call.info.verb == "get";
  std::map<std::string, Json> pods;  // by namespace and name
  std::vector<PodName> names;
  const auto take = [&](const Object& object) {
    const auto pod = parse_json(object.json);
    if (!pod) return;
    const PodName name{std::string(string_or(at(*pod, "metadata", "namespace"))),
                       std::string(string_or(at(*pod, "metadata", "name")))};
    pods.emplace(key_of(name.ns, name.pod), *pod);
    names.push_back(name);
  };
  if (one) {
    const auto object = api.store.get("pods", key_of(call.info.ns, call.info.name));
    if (object) take(*object);
  } else {
    const auto selection = Selection::parse(call);
    if (!selection) co_return Refusal(selection.error());
    const auto page = api.store.list("pods", {.prefix = selection->prefix()});
    if (page) {
      for (const auto& object : page->items) {
        if (selection->matches(*object)) take(*object);
      }
    }
  }
  std::vector<Json> items;
  for (const auto& usage : co_await api.pods->usage(std::move(names))) {
    items.push_back(metrics_of(pods[key_of(usage.ns, usage.pod)], usage));
  }
  if (!one) co_return Reply{.body = list_text(api, call, items)};
  if (items.empty()) co_return Refusal(not_found(call.what(), call.info.name));
  co_return Reply{.body = encode_json(api, call, items[0])};
}

}  // namespace

std::vector<TypePtr> node_types() {
  return {std::make_shared<const ResourceType>(
              type_of("metrics.k8s.io", "v1beta1", "PodMetrics", "pods", {"get", "list"})),
          std::make_shared<const ResourceType>(
              type_of("local.grapnel.dev", "v1alpha1", "PodLog", "podlogs", {"list"}))};
}

bool is_of_node(const ResourceType& type) {
  return type.group == "metrics.k8s.io" || type.group == "local.grapnel.dev";
}

Task<Answer<Reply>> read_from_node(Api& api, Call& call) {
  if (api.pods == nullptr) co_return Refusal(not_implemented("no node of this cluster runs pods"));
  if (call.type->kind == "PodLog") co_return list_kept_logs(api, call);
  co_return co_await read_pod_metrics(api, call);
}

}  // namespace grapnel::local
