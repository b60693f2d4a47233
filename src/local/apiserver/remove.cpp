#include "local/apiserver/remove.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "kube/types/conform.h"
#include "kube/types/shapes.h"
#include "local/apiserver/metadata.h"
#include "local/apiserver/selection.h"
#include "local/apiserver/write.h"

namespace grapnel::local {
namespace {

constexpr const char* kForeground = "foregroundDeletion";
constexpr const char* kOrphan = "orphan";

std::optional<std::string> finalizer_of(const ResourceType& type, const DeleteOptions& options) {
  if (options.propagation == "Foreground") return kForeground;
  if (options.propagation == "Orphan") return kOrphan;
  if (options.propagation == "Background") return std::nullopt;
  if (options.orphan_dependents) {
    return *options.orphan_dependents ? std::optional<std::string>(kOrphan) : std::nullopt;
  }
  // For compatibility a Job's pods stay unless the client says otherwise.
  if (type.group == "batch" && type.kind == "Job") return kOrphan;
  return std::nullopt;
}

// The finalizers after this request: its own cascade, and not another request's.
void set_cascade(JsonObject& meta, const ResourceType& type, const DeleteOptions& options) {
  const bool says = !options.propagation.empty() || options.orphan_dependents.has_value();
  const auto wanted = finalizer_of(type, options);
  JsonArray kept;
  bool already_orphans = false;
  bool already_foreground = false;
  if (const Json* list = meta.if_contains("finalizers"); list != nullptr && list->is_array()) {
    for (const Json& one : list->as_array()) {
      const std::string_view name = string_or(&one);
      already_orphans |= name == kOrphan;
      already_foreground |= name == kForeground;
      if (says && (name == kOrphan || name == kForeground)) continue;
      kept.push_back(one);
    }
  }
  const bool present = wanted && ((*wanted == kOrphan && already_orphans) ||
                                  (*wanted == kForeground && already_foreground));
  if (wanted && (says || (!already_foreground && !present))) kept.emplace_back(*wanted);
  if (kept.empty()) {
    meta.erase("finalizers");
  } else {
    meta["finalizers"] = std::move(kept);
  }
}

Answer<> check_preconditions(const Call& call, const Json& object, const DeleteOptions& options) {
  const std::string_view name = meta_text(object, "name");
  const GroupResource what{call.type->group, call.type->kind};
  const std::string_view uid = meta_text(object, "uid");
  if (!options.uid.empty() && options.uid != uid) {
    return Refusal(conflict(
        what, name,
        fmt::format("the UID in the precondition ({}) does not match the UID in record ({}). The "
                    "object might have been deleted and then recreated",
                    options.uid, uid)));
  }
  const std::string_view version = meta_text(object, "resourceVersion");
  if (!options.version.empty() && options.version != version) {
    return Refusal(
        conflict(what, name,
                 fmt::format("the ResourceVersion in the precondition ({}) does not match the "
                             "ResourceVersion in record ({}). The object might have been modified",
                             options.version, version)));
  }
  return {};
}

int64_t grace_of(const Json& object, const ResourceType& type, const DeleteOptions& options) {
  if (!type.graceful) return 0;
  const std::string_view phase = string_or(at(object, "status", "phase"));
  if (string_or(at(object, "spec", "nodeName")).empty() || phase == "Succeeded" ||
      phase == "Failed") {
    return 0;
  }
  const int64_t grace =
      options.grace_seconds.value_or(int_or(at(object, "spec", "terminationGracePeriodSeconds")));
  return grace < 0 ? 1 : grace;
}

// A definition that has objects stays until they are gone. The controller that deletes them removes
// this finalizer.
void hold_definition(JsonObject& definition, Time now) {
  JsonObject& meta = ensure_object(definition, "metadata");
  Json& finalizers = meta["finalizers"];
  if (!finalizers.is_array()) finalizers = JsonArray();
  const Json ours("customresourcecleanup.apiextensions.k8s.io");
  if (std::ranges::find(finalizers.as_array(), ours) == finalizers.as_array().end()) {
    finalizers.as_array().push_back(ours);
  }
  Json& conditions = ensure_object(definition, "status")["conditions"];
  if (!conditions.is_array()) conditions = JsonArray();
  conditions.as_array().push_back(
      {{"type", "Terminating"},
       {"status", "True"},
       {"lastTransitionTime", format_time(now)},
       {"reason", "InstanceDeletionPending"},
       {"message",
        "CustomResourceDefinition marked for deletion; CustomResource deletion will begin soon"}});
}

// Marks the object as being deleted, or shortens the time it has left. False: nothing to change.
bool mark_deleted(Json& object, const ResourceType& type, const DeleteOptions& options, Time now) {
  JsonObject& meta = object.as_object()["metadata"].as_object();
  if (is_being_deleted(object)) {
    const int64_t before = int_or(meta.if_contains("deletionGracePeriodSeconds"));
    if (before == 0 || !options.grace_seconds || !type.graceful) return false;
    int64_t grace = std::max<int64_t>(*options.grace_seconds, 0);
    if (grace >= before) return false;
    const auto deadline = parse_time(string_or(meta.if_contains("deletionTimestamp")));
    Time moved = deadline.value_or(now) - seconds(before) + seconds(grace);
    if (moved < now) {
      moved = now;
      if (grace != 0) grace = 1;
    }
    meta["deletionTimestamp"] = format_time(moved);
    meta["deletionGracePeriodSeconds"] = grace;
    return true;
  }
  const int64_t grace = grace_of(object, type, options);
  meta["deletionTimestamp"] = format_time(now + seconds(grace));
  meta["deletionGracePeriodSeconds"] = grace;
  if (const int64_t generation = int_or(meta.if_contains("generation")); generation > 0) {
    meta["generation"] = generation + 1;
  }
  if (type.kind == "Namespace" && type.group.empty()) {
    meta.erase("deletionGracePeriodSeconds");
    ensure_object(object.as_object(), "status")["phase"] = "Terminating";
  }
  return true;
}

bool holds_on(const Json& object, const ResourceType& type) {
  if (has_finalizers(object)) return true;
  if (type.kind == "Namespace" && type.group.empty()) {
    const Json* finalizers = at(object, "spec", "finalizers");
    return finalizers != nullptr && finalizers->is_array() && !finalizers->as_array().empty();
  }
  return int_or(at(object, "metadata", "deletionGracePeriodSeconds")) > 0;
}

// The body, when there is one, is a DeleteOptions and nothing else.
Answer<> check_options(Json& body) {
  const auto refuse = [](std::string why) {
    return Refusal(ApiError{.code = 500, .message = std::move(why)});
  };
  if (!body.is_object()) return refuse("the options of a deletion are a JSON object");
  const std::string_view kind = string_or(find(body, "kind"));
  const std::string_view version = string_or(find(body, "apiVersion"));
  if (!kind.empty() && kind != "DeleteOptions") {
    return refuse(fmt::format("no kind {} is registered for version {} in scheme", in_quotes(kind),
                              in_quotes(version)));
  }
  if (auto known = kube::conform(kube::shapes::meta_v1_DeleteOptions, body.as_object()); !known) {
    return refuse(known.error().message);
  }
  const Json* dry = find(body, "dryRun");
  if (dry == nullptr || !dry->is_array()) return {};
  for (const Json& one : dry->as_array()) {
    if (string_or(&one) != "All") {
      return Refusal(invalid_dry_run("DeleteOptions", string_or(&one)));
    }
  }
  return {};
}

}  // namespace

DeleteOptions DeleteOptions::from_json(const Json& options) {
  DeleteOptions result;
  if (const Json* grace = find(options, "gracePeriodSeconds");
      grace != nullptr && grace->is_number()) {
    result.grace_seconds = int_or(grace);
  }
  result.uid = string_or(at(options, "preconditions", "uid"));
  result.version = string_or(at(options, "preconditions", "resourceVersion"));
  result.propagation = string_or(find(options, "propagationPolicy"));
  if (const Json* orphan = find(options, "orphanDependents");
      orphan != nullptr && orphan->is_bool()) {
    result.orphan_dependents = bool_or(orphan);
  }
  if (const Json* dry = find(options, "dryRun"); dry != nullptr && dry->is_array()) {
    result.dry_run = !dry->as_array().empty();
  }
  return result;
}

Answer<DeleteOptions> DeleteOptions::parse(const Call& call) {
  auto body = decode_body(call);
  if (!body) return Refusal(body.error());
  if (auto checked = check_options(*body); !checked) return Refusal(checked.error());
  DeleteOptions options = from_json(*body);
  options.dry_run |= call.dry_run;
  if (call.request->body.empty()) {
    const std::string_view grace = call.query("gracePeriodSeconds");
    if (!grace.empty()) {
      int64_t number = 0;
      const auto [end, error] = std::from_chars(grace.data(), grace.data() + grace.size(), number);
      if (error != std::errc() || end != grace.data() + grace.size()) {
        return Refusal(bad_request(
            fmt::format("strconv.ParseInt: parsing {}: invalid syntax", in_quotes(grace))));
      }
      options.grace_seconds = number;
    }
    if (call.target.has("propagationPolicy")) options.propagation = call.query("propagationPolicy");
    if (call.target.has("orphanDependents")) {
      options.orphan_dependents = call.query("orphanDependents") == "true";
    }
  }
  const std::string& policy = options.propagation;
  if (!policy.empty() && policy != "Foreground" && policy != "Background" && policy != "Orphan") {
    return Refusal(invalid(
        "meta.k8s.io", "DeleteOptions", "",
        {Cause{.field = "propagationPolicy",
               .message = fmt::format("Unsupported value: {}: supported values: \"Foreground\", "
                                      "\"Background\", \"Orphan\", \"nil\"",
                                      in_quotes(policy)),
               .reason = "FieldValueNotSupported"}}));
  }
  if (options.orphan_dependents && !policy.empty()) {
    return Refusal(invalid("meta.k8s.io", "DeleteOptions", "",
                           {Cause{.field = "propagationPolicy",
                                  .message = fmt::format("Invalid value: {}: orphanDependents and "
                                                         "deletionPropagation cannot be both set",
                                                         in_quotes(policy)),
                                  .reason = "FieldValueInvalid"}}));
  }
  return options;
}

Task<Answer<Removed>> remove_one(Api& api, Call& call, std::string ns, std::string name,
                                 DeleteOptions options) {
  const TypePtr type = call.type;
  const std::string collection = type->collection();
  const std::string key = key_of(type->namespaced ? ns : "", name);
  co_await api.store.settle(collection, key);
  const ObjectPtr stored = api.store.get(collection, key);
  if (!stored) co_return Refusal(not_found(call.what(), name));
  const Json current = object_as(*type, *stored);
  if (auto holds = check_preconditions(call, current, options); !holds) {
    co_return Refusal(holds.error());
  }
  Review review{.operation = "DELETE", .ns = ns, .name = name};
  const bool asked = api.webhooks.may_concern(call, "DELETE");
  if (asked) review.old = current;
  if (asked && api.webhooks.concern(api, call, review)) {
    auto allowed = co_await api.webhooks.validate(api, call, std::move(review));
    if (!allowed) co_return Refusal(allowed.error());
    // What is deleted is what the webhooks saw, or they are asked again.
    co_await api.store.settle(collection, key);
    if (api.store.get(collection, key) != stored) {
      co_return co_await remove_one(api, call, std::move(ns), std::move(name), std::move(options));
    }
  }
  Json object = current;
  set_cascade(object.as_object()["metadata"].as_object(), *type, options);
  const bool marked = mark_deleted(object, *type, options, api.clock.now());
  if (marked && type->kind == "CustomResourceDefinition" && api.store.count(name) > 0) {
    hold_definition(object.as_object(), api.clock.now());
  }
  if (!holds_on(object, *type)) {
    if (options.dry_run) co_return Removed{.object = stored, .gone = true};
    // Watchers see the object as it was at the end, without the mark.
    auto ended = co_await write_end(api, *type, key, type->graceful ? object : current);
    if (!ended) co_return Refusal(ended.error());
    co_return Removed{.object = *ended, .gone = true};
  }
  if (same_content(object, current)) co_return Removed{.object = stored};
  if (options.dry_run) {
    auto shown = std::make_shared<Object>(*stored);
    shown->json = to_text(stored_as(*type, std::move(object)));
    co_return Removed{.object = shown};
  }
  auto kept = std::make_shared<Json>(stored_as(*type, std::move(object)));
  auto put = co_await api.store.put(collection, key, [kept](uint64_t version) {
    kept->as_object()["metadata"].as_object()["resourceVersion"] = std::to_string(version);
    return to_text(*kept);
  });
  if (!put) co_return Refusal(internal(put.error().message));
  co_return Removed{.object = *put};
}

Task<Answer<Reply>> delete_object(Api& api, Call& call) {
  auto options = DeleteOptions::parse(call);
  if (!options) co_return Refusal(options.error());
  if (call.type->group == "batch" && call.type->kind == "Job" && options->propagation.empty() &&
      !options->orphan_dependents) {
    call.warnings.push_back(
        "child pods are preserved by default when jobs are deleted; set "
        "propagationPolicy=Background to remove them or set propagationPolicy=Orphan to suppress "
        "this warning");
  }
  if (call.type->kind == "Namespace" && call.type->group.empty()) {
    const std::string& name = call.info.name;
    if (name == "default" || name == "kube-system" || name == "kube-public") {
      co_return Refusal(forbidden({"", "namespaces"}, name, "this namespace may not be deleted"));
    }
  }
  auto removed = co_await remove_one(api, call, call.info.ns, call.info.name, std::move(*options));
  if (!removed) co_return Refusal(removed.error());
  if (removed->gone && !call.type->returns_deleted) {
    const Json object = object_as(*call.type, *removed->object);
    co_return Reply{
        .body = to_text(success_status(call.what(), call.info.name, meta_text(object, "uid")))};
  }
  co_return Reply{.body = encode_object(api, call, *removed->object)};
}

Task<Answer<Reply>> delete_objects(Api& api, Call& call) {
  auto options = DeleteOptions::parse(call);
  if (!options) co_return Refusal(options.error());
  const auto selection = Selection::parse(call);
  if (!selection) co_return Refusal(selection.error());
  ListRange range{.prefix = selection->prefix()};
  if (!selection->selects_all()) {
    range.filter = [&selection](const Object& object) { return selection->matches(object); };
  }
  auto page = api.store.list(call.type->collection(), range);
  if (!page) co_return Refusal(internal(page.error().message));
  std::string items;
  for (const ObjectPtr& item : page->items) {
    auto removed = co_await remove_one(api, call, std::string(item->ns()),
                                       std::string(item->name()), *options);
    if (!removed) {
      if (removed.error().code == 404) continue;
      co_return Refusal(removed.error());
    }
    if (!items.empty()) items.push_back(',');
    items += list_item(*call.type, *item);
  }
  co_return Reply{
      .body = fmt::format(
          R"({{"kind":"{}","apiVersion":"{}","metadata":{{"resourceVersion":"{}"}},"items":[{}]}})",
          call.type->list_kind(), call.type->api_version(), api.store.version(), items)};
}

}  // namespace grapnel::local
