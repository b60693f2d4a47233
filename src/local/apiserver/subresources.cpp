#include "local/apiserver/subresources.h"

#include <fmt/format.h>

#include "base/strings.h"
#include "document/patch.h"
#include "document/selector.h"
#include "local/apiserver/crd.h"
#include "local/apiserver/metadata.h"
#include "local/apiserver/remove.h"
#include "local/apiserver/write.h"

namespace grapnel::local {
namespace {

constexpr std::string_view kUser = "kubernetes-admin";

JsonObject user_info() {
  return {{"username", kUser},
          {"groups", JsonArray{Json("system:masters"), Json("system:authenticated")}}};
}

// The value at a simple path like .spec.replicas.
const Json* at_path(const Json& object, std::string_view path) {
  const Json* value = &object;
  for (const std::string_view part : split(path, '.')) {
    if (part.empty()) continue;
    value = find(*value, part);
    if (value == nullptr) return nullptr;
  }
  return value;
}

void set_path(JsonObject& object, std::string_view path, Json value) {
  JsonObject* place = &object;
  std::vector<std::string_view> parts;
  for (const std::string_view part : split(path, '.')) {
    if (!part.empty()) parts.push_back(part);
  }
  for (size_t i = 0; i + 1 < parts.size(); ++i) place = &ensure_object(*place, parts[i]);
  if (!parts.empty()) (*place)[parts.back()] = std::move(value);
}

struct ScalePaths {
  std::string spec = ".spec.replicas";
  std::string status = ".status.replicas";
  std::string selector;
};

ScalePaths paths_of(const ResourceType& type) {
  if (!type.custom) return {};
  return {.spec = type.custom->scale_spec_path,
          .status = type.custom->scale_status_path,
          .selector = type.custom->scale_selector_path};
}

std::string selector_text(const ResourceType& type, const Json& object) {
  if (type.custom) {
    const ScalePaths paths = paths_of(type);
    return paths.selector.empty() ? "" : std::string(string_or(at_path(object, paths.selector)));
  }
  const Json* selector = at(object, "spec", "selector");
  if (selector == nullptr) return "";
  const auto parsed = Selector::from_label_selector(*selector);
  return parsed ? parsed->text() : "";
}

Json scale_of(const ResourceType& type, const Json& object) {
  const ScalePaths paths = paths_of(type);
  JsonObject meta;
  for (const char* key : {"name", "namespace", "uid", "resourceVersion", "creationTimestamp"}) {
    if (const Json* value = at(object, "metadata", key)) meta[key] = *value;
  }
  JsonObject spec;
  if (const int64_t replicas = int_or(at_path(object, paths.spec)); replicas != 0) {
    spec["replicas"] = replicas;
  }
  JsonObject status{{"replicas", int_or(at_path(object, paths.status))}};
  if (std::string selector = selector_text(type, object); !selector.empty()) {
    status["selector"] = std::move(selector);
  }
  return JsonObject{{"kind", "Scale"},
                    {"apiVersion", "autoscaling/v1"},
                    {"metadata", std::move(meta)},
                    {"spec", std::move(spec)},
                    {"status", std::move(status)}};
}

Answer<Json> find_object(Api& api, const Call& call) {
  const std::string key = key_of(call.type->namespaced ? call.info.ns : "", call.info.name);
  const ObjectPtr object = api.store.get(call.type->collection(), key);
  if (!object) return Refusal(not_found(call.what(), call.info.name));
  return object_as(*call.type, *object);
}

// The object as it would be with this scale.
Answer<Json> with_scale(const ResourceType& type, const Json& current, const Json& scale) {
  const Json* replicas = at(scale, "spec", "replicas");
  const int64_t wanted = int_or(replicas);
  if (wanted < 0) {
    return Refusal(invalid("autoscaling", "Scale", meta_text(current, "name"),
                           {Cause{.field = "spec.replicas",
                                  .message = fmt::format("Invalid value: {}: must be greater than "
                                                         "or equal to 0",
                                                         wanted),
                                  .reason = "FieldValueInvalid"}}));
  }
  Json next = current;
  set_path(next.as_object(), paths_of(type).spec, Json(wanted));
  // A version in the Scale is a version of the object.
  const std::string_view version = meta_text(scale, "resourceVersion");
  if (!version.empty()) {
    ensure_object(next.as_object(), "metadata")["resourceVersion"] = version;
  }
  return next;
}

}  // namespace

Answer<Reply> answer_question(Api& api, Call& call, Json object) {
  JsonObject& fields = object.as_object();
  const std::string& kind = call.type->kind;
  fields["metadata"] = JsonObject{{"creationTimestamp", format_time(api.clock.now())}};
  if (kind == "SelfSubjectReview") {
    fields["status"] = JsonObject{{"userInfo", user_info()}};
  } else if (kind == "TokenReview") {
    const std::string_view token = string_or(at(object, "spec", "token"));
    if (!token.empty() && (api.token.empty() || token == api.token)) {
      fields["status"] = JsonObject{{"authenticated", true}, {"user", user_info()}};
    } else {
      fields["status"] = JsonObject{{"error", "the token is not valid"}, {"user", JsonObject()}};
    }
  } else if (kind == "SelfSubjectRulesReview") {
    const Json all = JsonArray{Json("*")};
    fields["status"] = JsonObject{
        {"resourceRules",
         JsonArray{JsonObject{{"verbs", all}, {"apiGroups", all}, {"resources", all}}}},
        {"nonResourceRules", JsonArray{JsonObject{{"verbs", all}, {"nonResourceURLs", all}}}},
        {"incomplete", false}};
  } else {
    fields["status"] = JsonObject{{"allowed", true}, {"reason", "the one local user may do all"}};
  }
  return Reply{.code = 201, .body = to_text(object)};
}

Task<Answer<Reply>> get_scale(Api& api, Call& call) {
  auto object = find_object(api, call);
  if (!object) co_return Refusal(object.error());
  co_return Reply{.body = to_text(scale_of(*call.type, *object))};
}

Task<Answer<Reply>> write_scale(Api& api, Call& call) {
  auto body = decode_body(call);
  if (!body) co_return Refusal(body.error());
  const bool whole = call.info.verb == "update";
  const bool json_patch =
      call.request->headers.get("content-type").starts_with("application/json-patch");
  const TypePtr type = call.type;
  Edit edit{.make = [&body, type, whole, json_patch](const Json& current) -> Answer<Json> {
              if (whole) return with_scale(*type, current, *body);
              Json scale = scale_of(*type, current);
              if (json_patch) {
                if (auto done = apply_json_patch(scale, *body); !done) {
                  return Refusal(bad_request(done.error().message));
                }
              } else {
                apply_merge_patch(scale, *body);
              }
              return with_scale(*type, current, scale);
            },
            .subresource = "scale"};
  auto written = co_await write_change(api, call, call.info.ns, call.info.name, std::move(edit));
  if (!written) co_return Refusal(written.error());
  co_return Reply{.body = to_text(scale_of(*type, object_as(*type, *written->object)))};
}

Task<Answer<Reply>> bind_pod(Api& api, Call& call) {
  auto binding = decode_body(call);
  if (!binding) co_return Refusal(binding.error());
  const std::string node(string_or(at(*binding, "target", "name")));
  const std::string_view kind = string_or(at(*binding, "target", "kind"));
  std::string wrong;
  if (!kind.empty() && kind != "Node") {
    wrong = fmt::format(
        "target.kind: Unsupported value: {}: supported values: \"Node\", "
        "\"<empty>\"",
        in_quotes(kind));
  } else if (node.empty()) {
    wrong = "target.name: Required value";
  }
  if (!wrong.empty()) co_return Refusal(ApiError{.code = 500, .message = wrong});
  const std::string now = format_time(api.clock.now());
  const std::string uid(meta_text(*binding, "uid"));
  Edit edit{
      .make = [&](const Json& current) -> Answer<Json> {
        const GroupResource what{"", "pods/binding"};
        if (!uid.empty() && uid != meta_text(current, "uid")) {
          return Refusal(conflict(what, call.info.name, "the pod has another uid"));
        }
        if (is_being_deleted(current)) {
          return Refusal(conflict(what, call.info.name,
                                  fmt::format("pod {} is being deleted, cannot be assigned to a "
                                              "host",
                                              call.info.name)));
        }
        const std::string_view before = string_or(at(current, "spec", "nodeName"));
        if (!before.empty()) {
          return Refusal(conflict(what, call.info.name,
                                  fmt::format("pod {} is already assigned to node {}",
                                              call.info.name, in_quotes(before))));
        }
        Json next = current;
        ensure_object(next.as_object(), "spec")["nodeName"] = node;
        if (const Json* notes = at(*binding, "metadata", "annotations");
            notes != nullptr && notes->is_object()) {
          JsonObject& meta = ensure_object(next.as_object(), "metadata");
          for (const auto& entry : notes->as_object()) {
            ensure_object(meta, "annotations")[entry.key()] = entry.value();
          }
        }
        JsonObject& status = ensure_object(next.as_object(), "status");
        JsonArray conditions;
        if (const Json* old = find(current, "status")) {
          if (const Json* list = find(*old, "conditions"); list != nullptr && list->is_array()) {
            for (const Json& one : list->as_array()) {
              if (string_or(find(one, "type")) != "PodScheduled") conditions.push_back(one);
            }
          }
        }
        conditions.emplace_back(JsonObject{{"type", "PodScheduled"},
                                           {"status", "True"},
                                           {"lastProbeTime", nullptr},
                                           {"lastTransitionTime", now}});
        status["conditions"] = std::move(conditions);
        return next;
      },
      .subresource = "binding"};
  auto written = co_await write_change(api, call, call.info.ns, call.info.name, std::move(edit));
  if (!written) co_return Refusal(written.error());
  co_return Reply{
      .code = 201,
      .body = R"({"kind":"Status","apiVersion":"v1","metadata":{},"status":"Success","code":201})"};
}

Task<Answer<Reply>> evict_pod(Api& api, Call& call) {
  auto eviction = decode_body(call);
  if (!eviction) co_return Refusal(eviction.error());
  const Json* given = find(*eviction, "deleteOptions");
  const Json options = given == nullptr ? Json(JsonObject()) : *given;
  auto removed = co_await remove_one(api, call, call.info.ns, call.info.name,
                                     DeleteOptions::from_json(options));
  if (!removed) co_return Refusal(removed.error());
  co_return Reply{
      .code = 201,
      .body = R"({"kind":"Status","apiVersion":"v1","metadata":{},"status":"Success","code":201})"};
}

Task<Answer<Reply>> request_token(Api& api, Call& call) {
  auto account = find_object(api, call);
  if (!account) co_return Refusal(account.error());
  auto body = decode_body(call);
  if (!body) co_return Refusal(body.error());
  const int64_t wanted = int_or(at(*body, "spec", "expirationSeconds"), 3600);
  JsonObject result{{"kind", "TokenRequest"}, {"apiVersion", "authentication.k8s.io/v1"}};
  result["metadata"] = JsonObject{{"name", call.info.name}, {"namespace", call.info.ns}};
  const Json* spec = find(*body, "spec");
  result["spec"] = spec == nullptr ? Json(JsonObject()) : *spec;
  result["status"] =
      JsonObject{{"token", api.token},
                 {"expirationTimestamp", format_time(api.clock.now() + seconds(wanted))}};
  co_return Reply{.code = 201, .body = to_text(result)};
}

}  // namespace grapnel::local
