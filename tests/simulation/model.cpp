#include "tests/simulation/model.h"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>

#include "base/strings.h"
#include "document/patch.h"
#include "kube/types/protobuf.h"
#include "kube/types/type_info.h"
#include "kube/types/wire.h"

namespace grapnel::simulation {
namespace {

http::Response json_response(int status, const Json& body) {
  return {
      .status = status, .headers = {{"Content-Type", "application/json"}}, .body = to_text(body)};
}

JsonObject& metadata_of(Json& object) {
  return ensure_object(object.as_object(), "metadata");
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

// Events have times in microseconds, which our encoder leaves to JSON.
bool has_protobuf(const kube::Kind& kind) {
  return kind != kube::kinds::kEvent &&
         kube::type_of_kind(kind.group, kind.version, kind.kind) != nullptr;
}

// What stands here must be what Kubernetes' own types can say.
std::string protobuf_of(const Json& object) {
  auto encoded = kube::encode_protobuf(object);
  if (!encoded) throw std::logic_error("not in protobuf: " + to_text(object));
  return std::move(*encoded);
}

// The object, or its metadata alone, in the form that was asked for.
http::Response answer_write(int status, const kube::Kind& kind, const Json& object,
                            std::string_view accept) {
  if (accept.find("as=PartialObjectMetadata") == accept.npos) return json_response(status, object);
  const Json partial = JsonObject{{"kind", "PartialObjectMetadata"},
                                  {"apiVersion", "meta.k8s.io/v1"},
                                  {"metadata", *find(object, "metadata")}};
  if (!accept.starts_with(kube::kProtobuf) || !has_protobuf(kind)) {
    return json_response(status, partial);
  }
  return {.status = status,
          .headers = {{"Content-Type", std::string(kube::kProtobuf)}},
          .body = protobuf_of(partial)};
}

std::string json_line(std::string_view type, const Json& object) {
  return fmt::format("{{\"type\":\"{}\",\"object\":{}}}\n", type, to_text(object));
}

std::string protobuf_frame(std::string_view type, const Json& object) {
  std::string raw;
  kube::append_bytes(raw, 1, protobuf_of(object));
  std::string event;
  kube::append_bytes(event, 1, type);
  kube::append_bytes(event, 2, raw);
  std::string frame;
  for (const int shift : {24, 16, 8, 0}) frame += static_cast<char>(event.size() >> shift & 0xff);
  return frame + event;
}

bool is_held(const ServedKind& kind, const Json& object) {
  // A pod without a node, or one that has ended, has nobody to wait for.
  const auto phase = string_or(at(object, "status", "phase"));
  const bool lives = !string_or(at(object, "spec", "nodeName")).empty() && phase != "Succeeded" &&
                     phase != "Failed";
  return has_finalizers(object) || (kind.is_graceful && lives);
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

ApiModel::ApiModel(std::vector<ServedKind> kinds, WebhookConfigurations webhooks)
    : Server(std::move(kinds)), webhooks_(std::move(webhooks)), history_(kinds_.size()) {}

ApiModel::~ApiModel() = default;

std::vector<ApiModel::Change>& ApiModel::history(const kube::Kind& kind) {
  const auto found = std::ranges::find(kinds_, kind, &ServedKind::kind);
  return history_[static_cast<size_t>(found - kinds_.begin())];
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
  const Sender sender{who, request.headers.get("Accept")};
  if (request.method == "GET") {
    return path->key.name.empty() ? list(*path, target) : get(*path);
  }
  if (request.method == "PATCH") return patch(*path, request, sender);
  auto body = request.headers.get("Content-Type") == kube::kProtobuf
                  ? kube::decode_protobuf(request.body)
                  : parse_json(request.body);
  if (!body) return failure(400, "BadRequest", body.error().message);
  if (request.method == "POST") {
    return path->subresource == "binding" ? bind(*path, *body, sender)
                                          : create(*path, std::move(*body), sender);
  }
  if (request.method == "PUT") return put(*path, std::move(*body), sender);
  if (request.method == "DELETE") return erase(*path, *body, sender);
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
    const auto page = pages_.find(token);
    if (page == pages_.end()) return failure(410, "Expired", "the continue token has expired");
    version = page->second.first;
    items = std::move(page->second.second);
    pages_.erase(page);
  } else {
    const Selection selection(path.key.ns, target.get("labelSelector"),
                              target.get("fieldSelector"));
    for (const Json* object : all(path.kind->kind)) {
      if (selection.matches(*object)) items.push_back(to_text(*object));
    }
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

http::Response ApiModel::create(const Path& path, Json object, const Sender& sender) {
  const auto& kind = path.kind->kind;
  object.as_object()["kind"] = kind.kind;
  object.as_object()["apiVersion"] = kind.api_version();
  metadata_of(object)["namespace"] = path.key.ns.view();
  if (!kind.namespaced) metadata_of(object).erase("namespace");
  auto reviewed =
      webhooks_.review(kind, std::move(object), nullptr, webhooks_down_ && webhooks_down_());
  if (reviewed.refused) return std::move(*reviewed.refused);
  object = std::move(reviewed.object);
  Path where = path;
  where.key.name = std::string(meta_text(object, "name"));
  if (find(kind, where.key) != nullptr) {
    return failure(409, "AlreadyExists", fmt::format("{} already exists", where.key.text()));
  }
  auto& metadata = metadata_of(object);
  metadata["uid"] = fmt::format("00000000-0000-4000-8000-{:012x}", ++uids_);
  metadata["creationTimestamp"] = now_();
  metadata.erase("deletionTimestamp");
  if (path.kind->has_status) {
    metadata["generation"] = 1;
    object.as_object().erase("status");
  }
  return store(where, std::move(object), sender);
}

http::Response ApiModel::put(const Path& path, Json object, const Sender& sender) {
  const Json* before = find(path.kind->kind, path.key);
  if (before == nullptr) return failure(404, "NotFound", path.key.text());
  const auto version = meta_text(object, "resourceVersion");
  if (!version.empty() && version != meta_text(*before, "resourceVersion")) {
    return conflict(path.key);
  }
  return store(path, std::move(object), sender);
}

http::Response ApiModel::patch(const Path& path, const http::Request& request,
                               const Sender& sender) {
  auto body = parse_json(request.body);
  if (!body) return failure(400, "BadRequest", body.error().message);
  const auto type = request.headers.get("Content-Type");
  if (type.starts_with("application/apply-patch")) return apply(path, std::move(*body), sender);
  const Json* before = find(path.kind->kind, path.key);
  if (before == nullptr) return failure(404, "NotFound", path.key.text());
  Json after = *before;
  if (type == "application/json-patch+json") {
    if (const auto done = apply_json_patch(after, *body); !done) {
      return failure(422, "Invalid", done.error().message);
    }
    return store(path, std::move(after), sender);
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
  return store(path, std::move(after), sender);
}

// Without field managers: what is applied is merged. Enough for subjects that own what they apply.
http::Response ApiModel::apply(const Path& path, Json body, const Sender& sender) {
  const Json* before = find(path.kind->kind, path.key);
  const auto uid = meta_text(body, "uid");
  if (before == nullptr) {
    if (!uid.empty()) return failure(409, "Conflict", "uid mismatch: no existing object was found");
    return create(path, std::move(body), sender);
  }
  if (!uid.empty() && uid != meta_text(*before, "uid")) {
    return failure(409, "Conflict", "uid mismatch");
  }
  Json after = *before;
  apply_merge_patch(after, body);
  return store(path, std::move(after), sender);
}

http::Response ApiModel::bind(const Path& path, const Json& binding, const Sender& sender) {
  const Json* before = find(path.kind->kind, path.key);
  if (before == nullptr) return failure(404, "NotFound", path.key.text());
  if (is_going(*before) || at(*before, "spec", "nodeName") != nullptr) return conflict(path.key);
  Json after = *before;
  ensure_object(after.as_object(), "spec")["nodeName"] = *at(binding, "target", "name");
  store({path.kind, path.key, ""}, std::move(after), sender);
  return json_response(201, JsonObject{{"kind", "Status"}, {"status", "Success"}});
}

http::Response ApiModel::erase(const Path& path, const Json& options, const Sender& sender) {
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
  if (has_finalizers(*before) || in_foreground || (is_held(*path.kind, *before) && !by_force)) {
    if (!is_going(*before)) begin_deletion(path, sender, in_foreground);
    return answer_write(200, path.kind->kind, *find(path.kind->kind, path.key), sender.accept);
  }
  remove(path, sender);
  return json_response(200,
                       JsonObject{{"kind", "Status"}, {"apiVersion", "v1"}, {"status", "Success"}});
}

// ---- storage ------------------------------------------------------------------------------------

// Keeps what the server owns, gives the object its next version, and tells watches. A write that
// changes nothing has no effect, as on a real server.
http::Response ApiModel::store(const Path& path, Json after, const Sender& sender) {
  const auto& kind = path.kind->kind;
  const Json* before = find(kind, path.key);
  if (before != nullptr) {
    auto& metadata = metadata_of(after);
    for (const auto* name : {"uid", "creationTimestamp", "generation", "namespace", "name",
                             "deletionTimestamp", "resourceVersion"}) {
      if (const Json* kept = at(*before, "metadata", name)) {
        metadata[name] = *kept;
      } else {
        metadata.erase(name);
      }
    }
    if (path.kind->has_status) after = merge_halves(*before, std::move(after), path.subresource);
    if (path.subresource.empty()) {
      auto reviewed =
          webhooks_.review(kind, std::move(after), before, webhooks_down_ && webhooks_down_());
      if (reviewed.refused) return std::move(*reviewed.refused);
      after = std::move(reviewed.object);
    }
    if (equal(*before, after)) {
      tell_write({sender.who, "update", kind, before, before, false});
      return answer_write(200, kind, *before, sender.accept);
    }
    if (is_going(after) && !is_held(*path.kind, after)) {
      remove(path, sender);
      return answer_write(200, kind, after, sender.accept);
    }
  }
  metadata_of(after)["resourceVersion"] = std::to_string(++version_);
  const auto now = std::make_shared<const Json>(std::move(after));
  const JsonPtr old = keep(kind, path.key, now);
  tell_write({sender.who, old ? "update" : "create", kind, old.get(), now.get()});
  record(kind, {.version = version_, .before = old, .after = now});
  return answer_write(old ? 200 : 201, kind, *now, sender.accept);
}

void ApiModel::begin_deletion(const Path& path, const Sender& sender, bool in_foreground) {
  Json object = *find(path.kind->kind, path.key);
  auto& metadata = metadata_of(object);
  metadata["deletionTimestamp"] = now_();
  metadata["generation"] = int_or(at(object, "metadata", "generation")) + 1;
  if (in_foreground) {
    Json& finalizers = metadata["finalizers"];
    if (!finalizers.is_array()) finalizers.emplace_array();
    finalizers.get_array().emplace_back("foregroundDeletion");
  }
  metadata["resourceVersion"] = std::to_string(++version_);
  const auto now = std::make_shared<const Json>(std::move(object));
  const JsonPtr old = keep(path.kind->kind, path.key, now);
  tell_write({sender.who, "update", path.kind->kind, old.get(), now.get()});
  record(path.kind->kind, {.version = version_, .before = old, .after = now});
}

void ApiModel::remove(const Path& path, const Sender& sender) {
  const JsonPtr before = keep(path.kind->kind, path.key, nullptr);
  tell_write({sender.who, "delete", path.kind->kind, before.get(), nullptr});
  Json last = *before;
  metadata_of(last)["resourceVersion"] = std::to_string(++version_);
  record(path.kind->kind, {.version = version_,
                           .before = before,
                           .after = std::make_shared<const Json>(std::move(last)),
                           .deleted = true});
}

// ---- watches ------------------------------------------------------------------------------------

class ApiModel::OpenWatch final : public Watch {
 public:
  OpenWatch(ApiModel& model, kube::Kind kind, Selection selection, bool protobuf, Send send)
      : model_(model),
        kind_(std::move(kind)),
        selection_(std::move(selection)),
        protobuf_(protobuf),
        send_(std::move(send)) {
    model_.watches_.push_back(this);
  }
  OpenWatch(const OpenWatch&) = delete;
  OpenWatch& operator=(const OpenWatch&) = delete;
  ~OpenWatch() override { std::erase(model_.watches_, this); }

  std::string bookmark() override { return bookmark(false); }

  void send_all() {
    for (const Json* object : model_.all(kind_)) {
      if (selection_.matches(*object)) send_(encode("ADDED", *object));
    }
  }
  void end_initial_events() { send_(bookmark(true)); }

  const kube::Kind& kind() const { return kind_; }
  // An object that no longer belongs to the selection is gone for who looks through it.
  void tell(const Change& change) {
    const bool was = change.before && selection_.matches(*change.before);
    const bool is = !change.deleted && selection_.matches(*change.after);
    if (is) {
      send_(encode(was ? "MODIFIED" : "ADDED", *change.after));
    } else if (was) {
      Json last = *change.before;
      metadata_of(last)["resourceVersion"] = std::to_string(change.version);
      send_(encode("DELETED", last));
    }
  }

 private:
  std::string encode(std::string_view type, const Json& object) const {
    return protobuf_ ? protobuf_frame(type, object) : json_line(type, object);
  }
  std::string bookmark(bool ends_initial_events) const {
    JsonObject metadata{{"resourceVersion", std::to_string(model_.version_)}};
    if (ends_initial_events) {
      metadata["annotations"] = JsonObject{{"k8s.io/initial-events-end", "true"}};
    }
    return encode("BOOKMARK", JsonObject{{"kind", kind_.kind},
                                         {"apiVersion", kind_.api_version()},
                                         {"metadata", std::move(metadata)}});
  }

  ApiModel& model_;
  kube::Kind kind_;
  Selection selection_;
  bool protobuf_;
  Send send_;
};

void ApiModel::record(const kube::Kind& kind, Change change) {
  for (OpenWatch* watch : watches_) {
    if (watch->kind() == kind) watch->tell(change);
  }
  history(kind).push_back(std::move(change));
}

Server::WatchAnswer ApiModel::watch(const http::Request& request, Send send) {
  const auto target = http::parse_target(request.target);
  const auto path = route(target.path);
  if (!path) {
    return {failure(404, "NotFound", "the server could not find the requested resource")};
  }
  const bool initial = target.get("sendInitialEvents") == "true";
  if (initial && !watch_list_) {
    return {failure(422, "Invalid", "sendInitialEvents is forbidden")};
  }
  const auto version = target.get("resourceVersion");
  const bool from_here = initial || version.empty() || version == "0";
  const auto from = kube::parse_resource_version(version);
  if (!from_here && from < oldest_) {
    return {failure(410, "Expired", "too old resource version")};
  }
  const auto& kind = path->kind->kind;
  const bool protobuf =
      request.headers.get("Accept").starts_with(kube::kProtobuf) && has_protobuf(kind);
  auto watch = std::make_unique<OpenWatch>(
      *this, kind,
      Selection(path->key.ns, target.get("labelSelector"), target.get("fieldSelector")), protobuf,
      std::move(send));
  if (from_here) {
    watch->send_all();
    if (initial) watch->end_initial_events();
  } else {
    const auto& changes = history(kind);
    const auto first = std::ranges::upper_bound(changes, from, {}, &Change::version);
    for (auto change = first; change != changes.end(); ++change) watch->tell(*change);
  }
  const std::string type =
      protobuf ? fmt::format("{};stream=watch", kube::kProtobuf) : std::string("application/json");
  return {std::nullopt, {{"Content-Type", type}}, std::move(watch)};
}

}  // namespace grapnel::simulation
