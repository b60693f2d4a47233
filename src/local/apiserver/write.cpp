#include "local/apiserver/write.h"

#include <fmt/format.h>

#include <algorithm>

#include "local/apiserver/conversion.h"
#include "local/apiserver/crd.h"
#include "local/apiserver/fields.h"
#include "local/apiserver/kinds/kinds.h"
#include "local/apiserver/limits.h"
#include "local/apiserver/managed/managers.h"
#include "local/apiserver/metadata.h"
#include "local/apiserver/pod_account.h"
#include "local/apiserver/pod_priority.h"

namespace grapnel::local {
namespace {

constexpr int kNameAttempts = 8;

ObjectPtr dry_object(const ResourceType& type, std::string key, uint64_t version, Json object) {
  auto result = std::make_shared<Object>();
  result->key = std::move(key);
  result->version = version;
  if (version > 0)
    object.as_object()["metadata"].as_object()["resourceVersion"] = std::to_string(version);
  result->json = to_text(stored_as(type, std::move(object)));
  return result;
}

Store::Render render(const ResourceType& type, Json object) {
  auto kept = std::make_shared<Json>(stored_as(type, std::move(object)));
  return [kept](uint64_t version) {
    kept->as_object()["metadata"].as_object()["resourceVersion"] = std::to_string(version);
    return to_text(*kept);
  };
}

// kind, apiVersion and metadata come first, as people expect.
Json in_order(Json object, const ResourceType& type) {
  JsonObject& from = object.as_object();
  JsonObject result;
  result.reserve(from.size() + 2);
  result["kind"] = type.kind;
  result["apiVersion"] = type.api_version();
  result["metadata"] = std::move(from["metadata"]);
  for (auto& entry : from) {
    if (!result.contains(entry.key())) result[entry.key()] = std::move(entry.value());
  }
  return result;
}

Answer<> check_namespace(const Api& api, const Call& call, const std::string& ns,
                         std::string_view name) {
  if (!call.type->namespaced) return {};
  const ObjectPtr stored = api.store.get("namespaces", ns);
  if (!stored) return Refusal(not_found({"", "namespaces"}, ns));
  const auto object = parse_json(stored->json);
  if (object && is_being_deleted(*object)) {
    ApiError error = forbidden(
        call.what(), name,
        fmt::format("unable to create new content in namespace {} because it is being terminated",
                    ns));
    error.causes.push_back(Cause{.field = "metadata.namespace",
                                 .message = fmt::format("namespace {} is being terminated", ns),
                                 .reason = "NamespaceTerminating"});
    return Refusal(std::move(error));
  }
  return {};
}

// Status of a fresh object, for the kinds whose preparation does not say it.
void first_status(JsonObject& object, const ResourceType& type) {
  if (!type.status_split || type.kind == "Node") return;
  if (type.custom) {
    object.erase("status");
  } else if (type.kind == "Service" || type.kind == "Ingress") {
    object["status"] = JsonObject{{"loadBalancer", JsonObject()}};
  } else {
    object["status"] = JsonObject();
  }
}

Writer writer_of(const Api& api, const Call& call, const std::string& subresource) {
  return {.manager = manager_name(call), .subresource = subresource, .now = api.clock.now()};
}

void complete_new(Api& api, Call& call, const std::string& ns, Json& object, bool applied) {
  const ResourceType& type = *call.type;
  JsonObject& fields = object.as_object();
  if (type.set_defaults != nullptr) type.set_defaults(fields);
  if (type.custom) custom_defaults(*type.custom, object);
  set_limit_defaults(api, call, ns, object);
  if (!applied) record_update(object, Json(), type, writer_of(api, call, ""));
  first_status(fields, type);
  if (type.prepare_create != nullptr) type.prepare_create(fields);
  if (type.kind == "CustomResourceDefinition") complete_definition(fields, api.clock.now());
}

void validate_new(Api& api, Call& call, JsonObject& object, FieldErrors& errors) {
  const ResourceType& type = *call.type;
  const Json view = object;
  validate_metadata(view, type, errors);
  if (type.validate != nullptr) type.validate(view, errors);
  if (type.custom) custom_validate(*type.custom, view, false, errors);
  if (type.kind == "CustomResourceDefinition") validate_definition(view, errors);
  if (type.kind == "Service" && type.group.empty() && errors.empty()) {
    api.services.allocate(object, nullptr, errors);
  }
}

// Everything but what the subresource may touch is put back as it was.
void keep_other_parts(JsonObject& object, const Json& old, const ResourceType& type,
                      const std::string& subresource) {
  if (subresource.empty() || subresource == "scale") {
    if (!type.status_split) return;
    const Json* status = find(old, "status");
    if (status == nullptr) {
      object.erase("status");
    } else {
      object["status"] = *status;
    }
    return;
  }
  if (subresource == "finalize") {
    JsonObject result = old.as_object();
    const Json* finalizers = at_in(object, "spec", "finalizers");
    JsonObject& spec = ensure_object(result, "spec");
    spec.erase("finalizers");
    if (finalizers != nullptr && finalizers->is_array() && !finalizers->as_array().empty()) {
      spec["finalizers"] = *finalizers;
    }
    result["metadata"] = object["metadata"];
    object = std::move(result);
    return;
  }
  if (subresource == "status") {
    JsonObject result = old.as_object();
    if (Json* status = object.if_contains("status")) {
      result["status"] = std::move(*status);
    } else {
      result.erase("status");
    }
    Json meta = std::move(object["metadata"]);
    JsonObject& keep = ensure_object(result, "metadata");
    if (JsonObject* given = meta.if_object()) {
      const bool whole = !type.custom;
      for (const char* key : {"labels", "annotations", "finalizers"}) {
        if (!whole) break;
        if (Json* value = given->if_contains(key)) {
          keep[key] = std::move(*value);
        } else {
          keep.erase(key);
        }
      }
      if (Json* fields = given->if_contains("managedFields")) keep["managedFields"] = *fields;
    }
    object = std::move(result);
  }
}

Answer<> check_version(const Call& call, const Json& object, const Json& old, std::string_view name,
                       const Edit& edit) {
  const std::string_view given = meta_text(object, "resourceVersion");
  const std::string_view uid = meta_text(object, "uid");
  const std::string_view old_uid = meta_text(old, "uid");
  // A patch may not change the uid, and gets an error that says so.
  const bool names_target = edit.needs_version || edit.applied;
  if (names_target && !uid.empty() && uid != old_uid) {
    return Refusal(conflict(call.what(), name,
                            fmt::format("Precondition failed: UID in precondition: {}, UID in "
                                        "object meta: {}",
                                        uid, old_uid)));
  }
  if (given.empty() || given == "0") {
    if (!edit.needs_version || call.type->unconditional_update) return {};
    std::vector<Cause> causes{
        Cause{.field = "metadata.resourceVersion",
              .message = "Invalid value: 0x0: must be specified for an update",
              .reason = "FieldValueInvalid"}};
    return Refusal(invalid(call.type->group, call.type->plural, name, std::move(causes)));
  }
  if (!std::all_of(given.begin(), given.end(), [](char c) { return c >= '0' && c <= '9'; })) {
    return Refusal(ApiError{
        .code = 500,
        .message = fmt::format("strconv.ParseUint: parsing {}: invalid syntax", in_quotes(given))});
  }
  if (given != meta_text(old, "resourceVersion")) return Refusal(modified(call.what(), name));
  return {};
}

// The scheduler's choice of a node is not a change of what was asked for.
void bump_generation(JsonObject& object, const Json& old, const ResourceType& type,
                     const std::string& subresource) {
  if (!type.has_generation || subresource == "binding") return;
  if (!spec_changed(object, old, !type.status_split)) return;
  JsonObject& meta = ensure_object(object, "metadata");
  meta["generation"] = int_or(meta.if_contains("generation")) + 1;
}

Answer<Json> complete_change(Api& api, Call& call, Json object, const Json& old,
                             const std::string& name, const Edit& edit) {
  const ResourceType& type = *call.type;
  if (!object.is_object()) return Refusal(bad_request("the object is not a JSON object"));
  if (auto checked = check_version(call, object, old, name, edit); !checked) {
    return Refusal(checked.error());
  }
  JsonObject& fields = object.as_object();
  keep_other_parts(fields, old, type, edit.subresource);
  FieldErrors errors;
  validate_given_metadata(object, old, errors);
  keep_old_metadata(fields, old);
  drop_repeated_owners(fields, call.warnings);
  if (type.custom) custom_defaults(*type.custom, object);
  if (type.set_defaults != nullptr) type.set_defaults(fields);
  if (!edit.applied) record_update(object, old, type, writer_of(api, call, edit.subresource));
  if (type.prepare_update != nullptr && edit.subresource.empty()) {
    type.prepare_update(fields, old);
  }
  tidy_metadata(fields);
  bump_generation(fields, old, type, edit.subresource);
  if (type.kind == "CustomResourceDefinition") complete_definition(fields, api.clock.now());
  object = in_order(std::move(object), type);
  validate_metadata(object, type, errors);
  validate_metadata_update(object, old, errors);
  if (type.warn != nullptr && edit.subresource.empty()) type.warn(object, call.warnings);
  errors.repeat();  // Kubernetes checks it in two places, and says so twice
  if (edit.subresource.empty()) {
    if (type.validate_update != nullptr) {
      type.validate_update(object, old, errors);
    } else if (type.validate != nullptr) {
      type.validate(object, errors);
    }
    if (type.kind == "CustomResourceDefinition") validate_definition_update(object, old, errors);
    if (type.kind == "Service" && type.group.empty() && errors.empty()) {
      api.services.allocate(object.as_object(), &old, errors);
    }
  }
  if (edit.subresource == "status" && type.validate_status != nullptr) {
    type.validate_status(object, errors);
  }
  if (type.custom) {
    custom_validate(*type.custom, object, edit.subresource == "status", errors);
  }
  if (!errors.empty()) return Refusal(invalid(type.group, type.kind, name, errors.take()));
  return object;
}

// An object that is being deleted is removed when its last finalizer is.
bool is_finished(const Json& object, const ResourceType& type) {
  if (!is_being_deleted(object) || has_finalizers(object)) return false;
  if (type.kind == "Namespace" && type.group.empty()) {
    const Json* finalizers = at(object, "spec", "finalizers");
    return finalizers == nullptr || !finalizers->is_array() || finalizers->as_array().empty();
  }
  return int_or(at(object, "metadata", "deletionGracePeriodSeconds")) == 0;
}

}  // namespace

bool is_stored_version(const ResourceType& type) {
  return type.storage_version.empty() && type.storage_group.empty();
}

Json object_as(const ResourceType& type, const Object& object) {
  auto parsed = parse_json(object.json);
  Json result = parsed ? std::move(*parsed) : Json(JsonObject());
  if (!is_stored_version(type)) convert_from_storage(type, result);
  return result;
}

std::string list_item(const ResourceType& type, const Object& object) {
  std::string text = is_stored_version(type) ? object.json : to_text(object_as(type, object));
  if (type.custom) return text;
  const std::string head =
      fmt::format(R"({{"kind":"{}","apiVersion":"{}",)", type.kind, type.api_version());
  if (text.starts_with(head)) text.replace(0, head.size(), "{");
  return text;
}

Json stored_as(const ResourceType& type, Json object) {
  if (!is_stored_version(type)) convert_to_storage(type, object);
  return object;
}

namespace {

constexpr int kWriteAttempts = 16;

void set_all_defaults(const ResourceType& type, Json& object) {
  if (type.set_defaults != nullptr) type.set_defaults(object.as_object());
  if (type.custom) custom_defaults(*type.custom, object);
}

// What a new pod gets at admission: its priority and its account.
Answer<> admit_pod(const Api& api, const ResourceType& type, std::string_view ns, Json& object) {
  if (type.kind != "Pod" || !type.group.empty()) return {};
  if (auto set = set_priority(api, object.as_object()); !set) return set;
  // Where nothing runs pods, nothing makes accounts either.
  return api.pods == nullptr ? Answer<>() : set_service_account(api, ns, object.as_object());
}

// What mutating webhooks make of a new object.
Task<Answer<Json>> mutate_new(Api& api, Call& call, std::string ns, Json object) {
  if (!api.webhooks.may_concern(call, "CREATE")) co_return object;
  set_all_defaults(*call.type, object);
  if (auto set = admit_pod(api, *call.type, ns, object); !set) co_return Refusal(set.error());
  Review review{.operation = "CREATE",
                .ns = ns,
                .name = std::string(meta_text(object, "name")),
                .object = object};
  if (call.type->namespaced) ensure_object(review.object.as_object(), "metadata")["namespace"] = ns;
  if (!api.webhooks.concern(api, call, review)) co_return object;
  co_return co_await api.webhooks.mutate(api, call, std::move(review));
}

}  // namespace

Task<Answer<Written>> write_new(Api& api, Call& call, std::string ns, Json object, bool applied) {
  const TypePtr type = call.type;
  if (!object.is_object()) co_return Refusal(bad_request("the object is not a JSON object"));
  if (!meta_text(object, "resourceVersion").empty()) {
    co_return Refusal(ApiError{
        .code = 500, .message = "resourceVersion should not be set on objects to be created"});
  }
  const std::string given(meta_text(object, "name"));
  const std::string base(meta_text(object, "generateName"));
  if (auto there = check_namespace(api, call, ns, given); !there) co_return Refusal(there.error());
  auto mutated = co_await mutate_new(api, call, ns, std::move(object));
  if (!mutated) co_return Refusal(mutated.error());
  object = std::move(*mutated);
  JsonObject& fields = object.as_object();
  drop_repeated_owners(fields, call.warnings);
  prepare_new_metadata(fields, *type, ns, api.clock.now(), api.random);
  if (given.empty() && !base.empty()) {
    ensure_object(fields, "metadata")["name"] = generate_name(base, api.random);
  }
  complete_new(api, call, ns, object, applied);
  if (auto set = admit_pod(api, *type, ns, object); !set) co_return Refusal(set.error());
  if (type->warn != nullptr) type->warn(object, call.warnings);
  tidy_metadata(fields);
  FieldErrors errors;
  object = in_order(std::move(object), *type);
  validate_new(api, call, object.as_object(), errors);
  std::string name(meta_text(object, "name"));
  if (!errors.empty()) co_return Refusal(invalid(type->group, type->kind, name, errors.take()));
  if (api.webhooks.may_concern(call, "CREATE")) {
    auto allowed = co_await api.webhooks.validate(
        api, call, {.operation = "CREATE", .ns = ns, .name = name, .object = object});
    if (!allowed) {
      if (type->kind == "Service") api.services.release(object);
      co_return Refusal(allowed.error());
    }
  }
  std::optional<Semaphore::Permit> turn;
  if (is_counted(api, call, ns, object)) turn.emplace(co_await api.counted_creates.acquire());
  if (auto within = check_limits(api, call, ns, object); !within) {
    if (type->kind == "Service") api.services.release(object);
    co_return Refusal(within.error());
  }

  for (int attempt = 0;; ++attempt) {
    std::string key = key_of(ns, name);
    co_await api.store.settle(type->collection(), key);
    if (!api.store.get(type->collection(), key)) {
      if (call.dry_run) {
        if (type->kind == "Service") api.services.release(object);
        co_return Written{.object = dry_object(*type, key, 0, std::move(object)), .created = true};
      }
      auto stored = co_await api.store.put(type->collection(), key, render(*type, object));
      if (!stored) co_return Refusal(internal(stored.error().message));
      co_return Written{.object = *stored, .created = true};
    }
    if (!given.empty() || base.empty() || attempt >= kNameAttempts) {
      if (type->kind == "Service") api.services.release(object);
      co_return Refusal(already_exists(call.what(), name));
    }
    name = generate_name(base, api.random);
    object.as_object()["metadata"].as_object()["name"] = name;
  }
}

Task<Answer<Written>> write_change(Api& api, Call& call, std::string ns, std::string name,
                                   Edit edit, int attempt) {
  const TypePtr type = call.type;
  const std::string collection = type->collection();
  std::string key = key_of(type->namespaced ? ns : "", name);
  co_await api.store.settle(collection, key);
  const ObjectPtr stored = api.store.get(collection, key);
  if (!stored) {
    if (!edit.make_new) co_return Refusal(not_found(call.what(), name));
    auto fresh = edit.make_new();
    if (!fresh) co_return Refusal(fresh.error());
    // A Namespace's own path has one too, and it is in none.
    if (!type->namespaced) ns.clear();
    co_return co_await write_new(api, call, std::move(ns), std::move(*fresh), edit.applied);
  }
  const Json old = object_as(*type, *stored);
  auto made = edit.make(old);
  if (!made) co_return Refusal(made.error());
  Review review;
  if (api.webhooks.may_concern(call, "UPDATE", edit.subresource) && made->is_object()) {
    set_all_defaults(*type, *made);
    review = {.operation = "UPDATE",
              .ns = ns,
              .name = name,
              .subresource = edit.subresource,
              .object = *made,
              .old = old};
  }
  const bool concerned = !review.name.empty() && api.webhooks.concern(api, call, review);
  if (concerned) {
    made = co_await api.webhooks.mutate(api, call, review);
    if (!made) co_return Refusal(made.error());
  }
  auto object = complete_change(api, call, std::move(*made), old, name, edit);
  if (!object) co_return Refusal(object.error());
  if (concerned) {
    review.object = *object;
    auto allowed = co_await api.webhooks.validate(api, call, std::move(review));
    if (!allowed) co_return Refusal(allowed.error());
    // Somebody wrote while the webhooks worked: start again from the current object.
    co_await api.store.settle(collection, key);
    if (api.store.get(collection, key) != stored) {
      if (attempt >= kWriteAttempts) co_return Refusal(modified(call.what(), name));
      co_return co_await write_change(api, call, ns, name, std::move(edit), attempt + 1);
    }
  }
  if (is_finished(*object, *type)) {
    if (call.dry_run) {
      co_return Written{.object = dry_object(*type, key, stored->version, std::move(*object))};
    }
    // Watchers see the state that was stored last; the client sees what it asked for.
    auto ended = co_await write_end(api, *type, key, old);
    if (!ended) co_return Refusal(ended.error());
    co_return Written{.object = dry_object(*type, key, (*ended)->version, std::move(*object))};
  }
  if (equal_but_version(*object, old)) co_return Written{.object = stored, .unchanged = true};
  if (call.dry_run) {
    co_return Written{.object = dry_object(*type, key, stored->version, std::move(*object))};
  }
  auto put = co_await api.store.put(collection, key, render(*type, std::move(*object)));
  if (!put) co_return Refusal(internal(put.error().message));
  co_return Written{.object = *put};
}

Task<Answer<ObjectPtr>> write_end(Api& api, const ResourceType& type, std::string key,
                                  const Json& last) {
  auto removed = co_await api.store.remove(type.collection(), std::move(key), render(type, last));
  if (!removed) co_return Refusal(internal(removed.error().message));
  co_return *removed;
}

}  // namespace grapnel::local
