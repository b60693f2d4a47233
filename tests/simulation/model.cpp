#include "tests/simulation/model.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/strings.h"
#include "document/patch.h"

namespace grapnel::simulation {
namespace {

http::Response json_response(int status, const Json& body) {
  return {
      .status = status, .headers = {{"Content-Type", "application/json"}}, .body = to_text(body)};
}

JsonObject& metadata_of(Json& object) {
  return ensure_object(object.as_object(), "metadata");
}

std::string_view meta_text(const Json& object, std::string_view name) {
  return string_or(at(object, "metadata", name));
}

bool has_finalizers(const Json& object) {
  const Json* list = at(object, "metadata", "finalizers");
  return list != nullptr && list->is_array() && !list->get_array().empty();
}

bool is_going(const Json& object) {
  return at(object, "metadata", "deletionTimestamp") != nullptr;
}

constexpr std::string_view kForeground = "foregroundDeletion";

bool is_in_foreground_deletion(const Json& object) {
  const Json* list = at(object, "metadata", "finalizers");
  return is_going(object) && list != nullptr && list->is_array() &&
         std::ranges::any_of(list->get_array(),
                             [](const Json& f) { return string_or(&f) == kForeground; });
}

bool is_owned_by(const Json& object, std::string_view uid) {
  const Json* owners = at(object, "metadata", "ownerReferences");
  return owners != nullptr && owners->is_array() &&
         std::ranges::any_of(owners->get_array(), [&](const Json& owner) {
           return string_or(find(owner, "uid")) == uid;
         });
}

bool same(const Json* a, const Json* b) {
  if (a == nullptr || b == nullptr) return a == b;
  return equal(*a, *b);
}

// A write to /status leaves all else alone, and any other write leaves the status alone. A new spec
// is a new generation.
Json merge_halves(const Json& before, Json after, std::string_view subresource) {
  const bool of_status = subresource == "status";
  const Json* status = find(of_status ? after : before, "status");
  Json out = of_status ? before : after;
  out.as_object().erase("status");
  if (status != nullptr) out.as_object()["status"] = *status;
  if (!same(find(before, "spec"), find(out, "spec"))) {
    metadata_of(out)["generation"] = int_or(at(before, "metadata", "generation")) + 1;
  }
  return out;
}

http::Response conflict(const kube::Key& key) {
  return failure(409, "Conflict", fmt::format("{}: the object has been modified", key.text()));
}

}  // namespace

http::Response failure(int code, std::string_view reason, std::string_view message,
                       std::string_view cause_field, std::string_view cause_reason) {
  JsonObject status{{"kind", "Status"}, {"apiVersion", "v1"}, {"status", "Failure"},
                    {"reason", reason}, {"message", message}, {"code", code}};
  if (!cause_field.empty() || !cause_reason.empty()) {
    status["details"] = JsonObject{
        {"causes", JsonArray{JsonObject{{"field", cause_field}, {"reason", cause_reason}}}}};
  }
  return json_response(code, status);
}

// ---- requests -----------------------------------------------------------------------------------

std::optional<ApiModel::Path> ApiModel::route(std::string_view path) const {
  auto parts = split(path, '/');  // "", "api", "v1", … or "", "apis", group, version, …
  if (parts.size() < 4) return std::nullopt;
  const bool core = parts[1] == "api";
  const std::string_view group = core ? "" : parts[2];
  parts.erase(parts.begin(), parts.begin() + (core ? 3 : 4));
  Path out;
  if (parts.size() >= 3 && parts[0] == "namespaces") {
    out.key.ns = Interned(parts[1]);
    parts.erase(parts.begin(), parts.begin() + 2);
  }
  if (parts.empty()) return std::nullopt;
  for (const auto& known : kinds_) {
    if (known.kind.group == group && known.kind.plural == parts[0]) out.kind = &known;
  }
  if (out.kind == nullptr) return std::nullopt;
  if (parts.size() > 1) out.key.name = std::string(parts[1]);
  if (parts.size() > 2) out.subresource = std::string(parts[2]);
  return out;
}

http::Response ApiModel::handle(const http::Request& request, const std::string& who) {
  const auto target = http::parse_target(request.target);
  const auto path = route(target.path);
  if (!path) return failure(404, "NotFound", "the server could not find the requested resource");
  if (request.method == "GET") {
    return path->key.name.empty() ? list(*path, target) : get(*path);
  }
  if (request.method == "PATCH") return patch(*path, request, who);
  auto body = parse_json(request.body);
  if (!body) return failure(400, "BadRequest", body.error().message);
  if (request.method == "POST") return create(*path, std::move(*body), who);
  if (request.method == "PUT") return put(*path, std::move(*body), who);
  if (request.method == "DELETE") return erase(*path, *body, who);
  return failure(405, "MethodNotAllowed", request.method);
}

http::Response ApiModel::get(const Path& path) const {
  const Json* found = find(path.kind->kind, path.key);
  if (found == nullptr) {
    return failure(404, "NotFound", fmt::format("{} not found", path.key.text()));
  }
  return json_response(200, *found);
}

http::Response ApiModel::list(const Path& path, const http::Target& target) {
  const auto wanted = kube::parse_resource_version(target.get("resourceVersion"));
  if (wanted > version_) {
    return failure(504, "Timeout", "Too large resource version", "", "ResourceVersionTooLarge");
  }
  std::vector<std::string> items;
  uint64_t version = version_;
  if (const auto token = target.get("continue"); !token.empty()) {
    const auto page = pages_.find(std::string(token));
    if (page == pages_.end()) return failure(410, "Expired", "the continue token has expired");
    version = page->second.first;
    items = page->second.second;
    pages_.erase(page);
  } else {
    for (const Json* object : all(path.kind->kind)) items.push_back(to_text(*object));
  }
  const auto limit = static_cast<size_t>(kube::parse_resource_version(target.get("limit")));
  std::string token;
  if (limit > 0 && items.size() > limit) {
    token = fmt::format("t{}", ++tokens_);
    pages_[token] = {version, {items.begin() + static_cast<ptrdiff_t>(limit), items.end()}};
    items.resize(limit);
  }
  return {
      .status = 200,
      .body = fmt::format(
          R"({{"kind":"{}List","metadata":{{"resourceVersion":"{}","continue":"{}"}},"items":[{}]}})",
          path.kind->kind.kind, version, token, fmt::join(items, ","))};
}

http::Response ApiModel::create(const Path& path, Json object, const std::string& who) {
  Path where = path;
  where.key.name = std::string(meta_text(object, "name"));
  if (find(path.kind->kind, where.key) != nullptr) {
    return failure(409, "AlreadyExists", fmt::format("{} already exists", where.key.text()));
  }
  auto& metadata = metadata_of(object);
  metadata["namespace"] = where.key.ns.view();
  metadata["uid"] = next_uid();
  metadata["creationTimestamp"] = now_();
  metadata.erase("deletionTimestamp");
  if (path.kind->has_status) {
    metadata["generation"] = 1;
    object.as_object().erase("status");
  }
  return store(where, std::move(object), who);
}

http::Response ApiModel::put(const Path& path, Json object, const std::string& who) {
  const Json* before = find(path.kind->kind, path.key);
  if (before == nullptr) return failure(404, "NotFound", path.key.text());
  const auto version = meta_text(object, "resourceVersion");
  if (!version.empty() && version != meta_text(*before, "resourceVersion")) {
    return conflict(path.key);
  }
  return store(path, std::move(object), who);
}

http::Response ApiModel::patch(const Path& path, const http::Request& request,
                               const std::string& who) {
  auto body = parse_json(request.body);
  if (!body) return failure(400, "BadRequest", body.error().message);
  const auto type = request.headers.get("Content-Type");
  if (type.starts_with("application/apply-patch")) return apply(path, std::move(*body), who);
  const Json* before = find(path.kind->kind, path.key);
  if (before == nullptr) return failure(404, "NotFound", path.key.text());
  Json after = *before;
  if (type == "application/json-patch+json") {
    if (const auto done = apply_json_patch(after, *body); !done) {
      return failure(422, "Invalid", done.error().message);
    }
    return store(path, std::move(after), who);
  }
  const auto version = meta_text(*body, "resourceVersion");
  if (!version.empty() && version != meta_text(*before, "resourceVersion")) {
    return conflict(path.key);
  }
  const auto uid = meta_text(*body, "uid");
  if (!uid.empty() && uid != meta_text(*before, "uid")) {
    return failure(422, "Invalid", "metadata.uid: field is immutable", "metadata.uid");
  }
  apply_merge_patch(after, *body);
  return store(path, std::move(after), who);
}

// Without field managers: what is applied is merged. Enough for subjects that own what they apply.
http::Response ApiModel::apply(const Path& path, Json body, const std::string& who) {
  const Json* before = find(path.kind->kind, path.key);
  const auto uid = meta_text(body, "uid");
  if (before == nullptr) {
    if (!uid.empty()) return failure(409, "Conflict", "uid mismatch: no existing object was found");
    return create(path, std::move(body), who);
  }
  if (!uid.empty() && uid != meta_text(*before, "uid")) {
    return failure(409, "Conflict", "uid mismatch");
  }
  Json after = *before;
  apply_merge_patch(after, body);
  return store(path, std::move(after), who);
}

http::Response ApiModel::erase(const Path& path, const Json& options, const std::string& who) {
  const Json* before = find(path.kind->kind, path.key);
  if (before == nullptr) return failure(404, "NotFound", path.key.text());
  const auto uid = string_or(at(options, "preconditions", "uid"));
  const auto version = string_or(at(options, "preconditions", "resourceVersion"));
  if ((!uid.empty() && uid != meta_text(*before, "uid")) ||
      (!version.empty() && version != meta_text(*before, "resourceVersion"))) {
    return failure(409, "Conflict", "Precondition failed");
  }
  const bool in_foreground = string_or(grapnel::find(options, "propagationPolicy")) == "Foreground";
  const Json* grace = grapnel::find(options, "gracePeriodSeconds");
  const bool by_force = grace != nullptr && int_or(grace, 1) == 0;
  const bool waits = path.kind->is_graceful && !by_force;
  if (has_finalizers(*before) || in_foreground || waits) {
    if (!is_going(*before)) begin_deletion(path, who, in_foreground);
    return get(path);
  }
  remove(*path.kind, path.key, who);
  return json_response(200, JsonObject{{"kind", "Status"}, {"status", "Success"}});
}

// ---- storage ------------------------------------------------------------------------------------

// Keeps what the server owns, gives the object its next version, and tells watches. A write that
// changes nothing has no effect, as on a real server.
http::Response ApiModel::store(const Path& path, Json after, const std::string& who) {
  auto& stored = objects(path.kind->kind);
  const auto found = stored.find(path.key);
  const Json* before = found == stored.end() ? nullptr : &found->second;
  auto& metadata = metadata_of(after);
  if (before != nullptr) {
    for (const auto* name : {"uid", "creationTimestamp", "generation", "namespace", "name",
                             "deletionTimestamp", "resourceVersion"}) {
      const Json* kept = at(*before, "metadata", name);
      if (kept != nullptr) {
        metadata[name] = *kept;
      } else {
        metadata.erase(name);
      }
    }
    if (path.kind->has_status) after = merge_halves(*before, std::move(after), path.subresource);
    if (equal(*before, after)) {
      if (on_write_) on_write_({who, "update", path.kind->kind, before, before, false});
      return json_response(200, *before);
    }
  }
  const bool held = path.kind->is_graceful || has_finalizers(after);
  if (before != nullptr && is_going(after) && !held) {
    remove(*path.kind, path.key, who);
    return json_response(200, after);
  }
  metadata_of(after)["resourceVersion"] = std::to_string(++version_);
  const std::optional<Json> old = before == nullptr ? std::nullopt : std::optional(*before);
  Json& now = stored[path.key] = std::move(after);
  if (on_write_) {
    on_write_({who, old ? "update" : "create", path.kind->kind, old ? &*old : nullptr, &now});
  }
  const auto response = json_response(old ? 200 : 201, now);
  record(path.kind->kind, old ? "MODIFIED" : "ADDED", now);
  return response;
}

void ApiModel::begin_deletion(const Path& path, const std::string& who, bool in_foreground) {
  Json& object = objects(path.kind->kind)[path.key];
  const Json before = object;
  auto& metadata = metadata_of(object);
  metadata["deletionTimestamp"] = now_();
  metadata["generation"] = int_or(at(object, "metadata", "generation")) + 1;
  if (in_foreground) {
    Json& finalizers = metadata["finalizers"];
    if (!finalizers.is_array()) finalizers.emplace_array();
    finalizers.get_array().emplace_back(kForeground);
  }
  metadata["resourceVersion"] = std::to_string(++version_);
  if (on_write_) on_write_({who, "update", path.kind->kind, &before, &object});
  record(path.kind->kind, "MODIFIED", object);
}

void ApiModel::remove(const ModelKind& kind, const kube::Key& key, const std::string& who) {
  auto& stored = objects(kind.kind);
  Json before = std::move(stored[key]);
  stored.erase(key);
  if (on_write_) on_write_({who, "delete", kind.kind, &before, nullptr});
  metadata_of(before)["resourceVersion"] = std::to_string(++version_);
  record(kind.kind, "DELETED", before);
}

void ApiModel::record(const kube::Kind& kind, std::string_view type, const Json& object) {
  history_[std::string(kind.plural)].push_back(
      {version_, std::string(type), std::make_shared<const std::string>(to_text(object))});
  if (on_change_) on_change_(kind);
}

std::string ApiModel::next_uid() {
  return fmt::format("00000000-0000-4000-8000-{:012x}", ++uids_);
}

void ApiModel::delete_as(const ModelKind& kind, const kube::Key& key, const std::string& who) {
  if (has_finalizers(*find(kind.kind, key)) || kind.is_graceful) {
    begin_deletion({&kind, key, ""}, who);
  } else {
    remove(kind, key, who);
  }
}

void ApiModel::finish_deletion(const kube::Kind& kind, const kube::Key& key) {
  for (const auto& known : kinds_) {
    if (known.kind == kind && find(kind, key) != nullptr) remove(known, key, "kubelet");
  }
}

bool ApiModel::collect_in_foreground(const ModelKind& kind, const kube::Key& key) {
  const std::string uid(meta_text(*find(kind.kind, key), "uid"));
  bool has_dependents = false;
  for (const auto& other : kinds_) {
    for (const auto& [name, object] : objects(other.kind)) {
      if (!is_owned_by(object, uid)) continue;
      has_dependents = true;
      if (is_going(object)) continue;
      delete_as(other, kube::Key(name), "gc");
      return true;
    }
  }
  if (has_dependents) return false;
  Json after = *find(kind.kind, key);
  auto& finalizers = metadata_of(after)["finalizers"].get_array();
  finalizers.erase(
      std::ranges::find_if(finalizers, [](const Json& f) { return string_or(&f) == kForeground; }));
  store({&kind, key, ""}, std::move(after), "gc");
  return true;
}

bool ApiModel::collect_one_orphan() {
  for (const auto& kind : kinds_) {
    for (const auto& [key, object] : objects(kind.kind)) {
      if (is_in_foreground_deletion(object)) {
        if (collect_in_foreground(kind, kube::Key(key))) return true;
        continue;
      }
      const Json* owners = at(object, "metadata", "ownerReferences");
      if (owners == nullptr || !owners->is_array() || owners->get_array().empty()) continue;
      const bool owned = std::ranges::any_of(owners->get_array(), [&](const Json& owner) {
        return exists(string_or(grapnel::find(owner, "uid")));
      });
      if (owned || is_going(object)) continue;
      delete_as(kind, kube::Key(key), "gc");
      return true;
    }
  }
  return false;
}

// ---- reading ------------------------------------------------------------------------------------

const ApiModel::Objects* ApiModel::objects_if_any(const kube::Kind& kind) const {
  const auto found = objects_.find(std::string(kind.plural));
  return found == objects_.end() ? nullptr : &found->second;
}

const Json* ApiModel::find(const kube::Kind& kind, const kube::Key& key) const {
  const auto* stored = objects_if_any(kind);
  if (stored == nullptr) return nullptr;
  const auto found = stored->find(key);
  return found == stored->end() ? nullptr : &found->second;
}

std::vector<const Json*> ApiModel::all(const kube::Kind& kind) const {
  std::vector<const Json*> out;
  if (const auto* stored = objects_if_any(kind)) {
    for (const auto& [key, object] : *stored) out.push_back(&object);
  }
  return out;
}

bool ApiModel::exists(std::string_view uid) const {
  return std::ranges::any_of(objects_, [&](const auto& kind) {
    return std::ranges::any_of(
        kind.second, [&](const auto& entry) { return meta_text(entry.second, "uid") == uid; });
  });
}

// ---- watches ------------------------------------------------------------------------------------

const std::vector<Change>& ApiModel::history(const kube::Kind& kind) const {
  static const std::vector<Change> kNone;
  const auto found = history_.find(std::string(kind.plural));
  return found == history_.end() ? kNone : found->second;
}

std::string ApiModel::line(const Change& change) {
  return fmt::format("{{\"type\":\"{}\",\"object\":{}}}\n", change.type, *change.object);
}

std::string ApiModel::bookmark(const kube::Kind& kind, bool ends_initial_events) const {
  return fmt::format(
      "{{\"type\":\"BOOKMARK\",\"object\":{{\"kind\":\"{}\",\"metadata\":{{\"resourceVersion\":\"{}"
      "\"{}}}}}}}\n",
      kind.kind, version_,
      ends_initial_events ? R"(,"annotations":{"k8s.io/initial-events-end":"true"})" : "");
}

ApiModel::WatchAnswer ApiModel::watch(const http::Target& target) {
  WatchAnswer out;
  const auto path = route(target.path);
  if (!path) {
    out.refused = failure(404, "NotFound", "the server could not find the requested resource");
    return out;
  }
  out.kind = path->kind->kind;
  const auto& changes = history(out.kind);
  out.next = changes.size();
  const bool initial = target.get("sendInitialEvents") == "true";
  if (initial && !watch_list_) {
    out.refused = failure(422, "Invalid", "sendInitialEvents is forbidden");
    return out;
  }
  const auto version = target.get("resourceVersion");
  if (initial || version.empty() || version == "0") {
    for (const Json* object : all(out.kind)) {
      out.first.push_back(fmt::format("{{\"type\":\"ADDED\",\"object\":{}}}\n", to_text(*object)));
    }
    if (initial) out.first.push_back(bookmark(out.kind, true));
    return out;
  }
  const auto from = kube::parse_resource_version(version);
  if (from < oldest_) {
    out.refused = failure(410, "Expired", "too old resource version");
    return out;
  }
  while (out.next > 0 && changes[out.next - 1].version > from) --out.next;
  return out;
}

}  // namespace grapnel::simulation
