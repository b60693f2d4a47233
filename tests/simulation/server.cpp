#include "tests/simulation/server.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/strings.h"

namespace grapnel::simulation {
namespace {

constexpr std::string_view kForeground = "foregroundDeletion";

const JsonArray* list_at(const Json& object, std::string_view name) {
  const Json* list = at(object, "metadata", name);
  return list == nullptr ? nullptr : list->if_array();
}

bool waits_for_dependents(const Json& object) {
  const auto* list = list_at(object, "finalizers");
  return is_going(object) && list != nullptr &&
         std::ranges::any_of(*list, [](const Json& f) { return string_or(&f) == kForeground; });
}

bool is_owned_by(const Json& object, std::string_view uid) {
  const auto* owners = list_at(object, "ownerReferences");
  return owners != nullptr && std::ranges::any_of(*owners, [&](const Json& owner) {
           return string_or(find(owner, "uid")) == uid;
         });
}

}  // namespace

std::string_view meta_text(const Json& object, std::string_view name) {
  return string_or(at(object, "metadata", name));
}

std::string_view label(const Json& object, std::string_view key) {
  return string_or(at(object, "metadata", "labels", key));
}

kube::Key key_of(const Json& object) {
  return {Interned(meta_text(object, "namespace")), std::string(meta_text(object, "name"))};
}

bool is_going(const Json& object) {
  return at(object, "metadata", "deletionTimestamp") != nullptr;
}

bool has_finalizers(const Json& object) {
  const auto* list = list_at(object, "finalizers");
  return list != nullptr && !list->empty();
}

std::string collection_of(const kube::Kind& kind, std::string_view ns) {
  return ns.empty() ? fmt::format("{}/{}", kind.api_path(), kind.plural)
                    : fmt::format("{}/namespaces/{}/{}", kind.api_path(), ns, kind.plural);
}

std::string path_of(const kube::Kind& kind, const Json& object) {
  return fmt::format("{}/{}", collection_of(kind, meta_text(object, "namespace")),
                     meta_text(object, "name"));
}

Server::Server(std::vector<ServedKind> kinds) : kinds_(std::move(kinds)), objects_(kinds_.size()) {}

http::Response Server::ask(std::string_view who, std::string method, std::string target,
                           const Json& body) {
  const bool patch = method == "PATCH";
  return handle(
      {.method = std::move(method),
       .target = std::move(target),
       .headers = {{"Content-Type", patch ? "application/merge-patch+json" : "application/json"}},
       .body = to_text(body)},
      std::string(who));
}

bool Server::is_list(const http::Target& target) {
  const auto parts =
      split(target.path, '/');  // "", "api", "v1", … or "", "apis", group, version, …
  const size_t first = parts.size() > 1 && parts[1] == "api" ? 3 : 4;
  const bool in_namespace = parts.size() > first && parts[first] == "namespaces";
  return parts.size() == first + (in_namespace ? 3 : 1);
}

// ---- state --------------------------------------------------------------------------------------

const Server::Objects* Server::objects_if_any(const kube::Kind& kind) const {
  for (size_t i = 0; i < kinds_.size(); ++i) {
    if (kinds_[i].kind == kind) return &objects_[i];
  }
  return nullptr;
}

Server::Objects& Server::objects(const kube::Kind& kind) {
  return *const_cast<Objects*>(objects_if_any(kind));
}

Server::JsonPtr Server::keep(const kube::Kind& kind, const kube::Key& key, JsonPtr object) {
  const auto count = [this](const Json& of, int change) {
    const auto uid = meta_text(of, "uid");
    const auto place = uids_.emplace(uid, 0).first;
    place->second += change;
    if (place->second == 0) uids_.erase(place);
  };
  auto& stored = objects(kind);
  const auto found = stored.find(key);
  JsonPtr before = found == stored.end() ? nullptr : found->second;
  if (object) count(*object, 1);
  if (before) count(*before, -1);
  if (!object) {
    if (found != stored.end()) stored.erase(found);
  } else if (found != stored.end()) {
    found->second = std::move(object);
  } else {
    stored.emplace(key, std::move(object));
  }
  return before;
}

const Json* Server::find(const kube::Kind& kind, const kube::Key& key) const {
  const auto* stored = objects_if_any(kind);
  if (stored == nullptr) return nullptr;
  const auto found = stored->find(key);
  return found == stored->end() ? nullptr : found->second.get();
}

std::vector<const Json*> Server::all(const kube::Kind& kind) const {
  std::vector<const Json*> out;
  if (const auto* stored = objects_if_any(kind)) {
    out.reserve(stored->size());
    for (const auto& [key, object] : *stored) out.push_back(object.get());
  }
  return out;
}

// ---- garbage ------------------------------------------------------------------------------------

void Server::finish_deletion(const kube::Kind& kind, const Json& object) {
  ask("kubelet", "DELETE", path_of(kind, object),
      JsonObject{{"gracePeriodSeconds", 0},
                 {"preconditions", JsonObject{{"uid", meta_text(object, "uid")}}}});
}

bool Server::collect_one_orphan() {
  for (const auto& served : kinds_) {
    for (const auto& [key, object] : objects(served.kind)) {
      const JsonPtr kept = object;  // the map changes with the first that is collected
      if (collect(served.kind, *kept)) return true;
    }
  }
  return false;
}

bool Server::collect(const kube::Kind& kind, const Json& object) {
  if (waits_for_dependents(object)) return collect_in_foreground(kind, object);
  const auto* owners = list_at(object, "ownerReferences");
  if (owners == nullptr || owners->empty() || is_going(object)) return false;
  const bool owned = std::ranges::any_of(
      *owners, [&](const Json& owner) { return exists(string_or(grapnel::find(owner, "uid"))); });
  if (owned) return false;
  // Without a policy a Job would leave its pods behind.
  ask("gc", "DELETE", path_of(kind, object),
      JsonObject{{"propagationPolicy", "Background"},
                 {"preconditions", JsonObject{{"uid", meta_text(object, "uid")}}}});
  return true;
}

bool Server::collect_in_foreground(const kube::Kind& kind, const Json& object) {
  const auto uid = meta_text(object, "uid");
  bool has_dependents = false;
  for (const auto& other : kinds_) {
    for (const auto& [key, dependent] : objects(other.kind)) {
      if (!is_owned_by(*dependent, uid)) continue;
      has_dependents = true;
      if (is_going(*dependent)) continue;
      const JsonPtr kept = dependent;
      ask("gc", "DELETE", path_of(other.kind, *kept),
          JsonObject{{"propagationPolicy", "Background"}});
      return true;
    }
  }
  if (has_dependents) return false;
  JsonArray left;
  for (const Json& finalizer : *list_at(object, "finalizers")) {
    if (string_or(&finalizer) != kForeground) left.push_back(finalizer);
  }
  Json finalizers = left.empty() ? Json() : Json(std::move(left));
  ask("gc", "PATCH", path_of(kind, object),
      JsonObject{{"metadata", JsonObject{{"finalizers", std::move(finalizers)}}}});
  return true;
}

}  // namespace grapnel::simulation
