// What a Kubernetes API server does to objects, in memory and at once: versions, preconditions,
// finalizers, garbage collection, lists in pages, and a history for watches. No time, no network
// and no chance in here: those are the world's.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "document/json.h"
#include "http/message.h"
#include "kube/kind.h"
#include "kube/meta.h"

namespace grapnel::simulation {

struct ModelKind {
  kube::Kind kind;
  bool has_status = false;   // a status subresource, and generations
  bool is_graceful = false;  // once deleted it stays until finish_deletion(), as a pod does
};

// One change, as watches tell it.
struct Change {
  uint64_t version = 0;
  std::string type;  // ADDED, MODIFIED, DELETED
  std::shared_ptr<const std::string> object;
};

// A write that took effect or changed nothing; for invariants.
struct WriteSeen {
  std::string who;
  std::string verb;  // create, update, delete
  kube::Kind kind;
  const Json* before = nullptr;  // nullptr: did not exist
  const Json* after = nullptr;   // nullptr: exists no more
  bool changed = true;
};

class ApiModel {
 public:
  explicit ApiModel(std::vector<ModelKind> kinds) : kinds_(std::move(kinds)) {}

  // Everything but watches. `who` made the request.
  http::Response handle(const http::Request& request, const std::string& who);

  // ---- watches ----
  struct WatchAnswer {
    std::optional<http::Response> refused;
    std::vector<std::string> first;  // lines to send at once
    size_t next = 0;                 // the first change of history() to send after those
    kube::Kind kind;
  };
  WatchAnswer watch(const http::Target& target);
  static bool is_watch(const http::Target& target) { return target.get("watch") == "true"; }
  const std::vector<Change>& history(const kube::Kind& kind) const;
  std::string bookmark(const kube::Kind& kind, bool ends_initial_events) const;
  static std::string line(const Change& change);
  // Called for each change after it has happened.
  void on_change(std::function<void(const kube::Kind&)> f) { on_change_ = std::move(f); }
  void on_write(std::function<void(const WriteSeen&)> f) { on_write_ = std::move(f); }

  // ---- what the cluster does ----
  void forget_history() { oldest_ = version_; }  // watches from before this are Expired
  void forget_pages() { pages_.clear(); }
  // What the garbage collector would do next: delete an orphan, or a dependent of what is deleted
  // in the foreground, or let that go once it has no dependents.
  bool collect_one_orphan();
  void finish_deletion(const kube::Kind& kind, const kube::Key& key);  // by the kubelet
  void set_watch_list(bool supported) { watch_list_ = supported; }
  void set_wall_time(std::function<std::string()> now) { now_ = std::move(now); }

  // ---- for users and invariants ----
  const Json* find(const kube::Kind& kind, const kube::Key& key) const;
  std::vector<const Json*> all(const kube::Kind& kind) const;
  bool exists(std::string_view uid) const;
  uint64_t version() const { return version_; }

 private:
  struct Path {
    const ModelKind* kind = nullptr;
    kube::Key key;
    std::string subresource;
  };
  using Objects = std::map<kube::Key, Json>;

  std::optional<Path> route(std::string_view path) const;
  http::Response get(const Path& path) const;
  http::Response list(const Path& path, const http::Target& target);
  http::Response create(const Path& path, Json object, const std::string& who);
  http::Response put(const Path& path, Json object, const std::string& who);
  http::Response patch(const Path& path, const http::Request& request, const std::string& who);
  http::Response apply(const Path& path, Json body, const std::string& who);
  http::Response erase(const Path& path, const Json& options, const std::string& who);

  http::Response store(const Path& path, Json after, const std::string& who);
  void begin_deletion(const Path& path, const std::string& who, bool in_foreground = false);
  void delete_as(const ModelKind& kind, const kube::Key& key, const std::string& who);
  bool collect_in_foreground(const ModelKind& kind, const kube::Key& key);
  void remove(const ModelKind& kind, const kube::Key& key, const std::string& who);
  void record(const kube::Kind& kind, std::string_view type, const Json& object);
  Objects& objects(const kube::Kind& kind) { return objects_[std::string(kind.plural)]; }
  const Objects* objects_if_any(const kube::Kind& kind) const;
  std::string next_uid();

  std::vector<ModelKind> kinds_;
  std::map<std::string, Objects> objects_;
  std::map<std::string, std::vector<Change>> history_;
  std::map<std::string, std::pair<uint64_t, std::vector<std::string>>> pages_;  // by token
  uint64_t version_ = 100;
  uint64_t oldest_ = 0;
  uint64_t uids_ = 0;
  uint64_t tokens_ = 0;
  bool watch_list_ = true;
  std::function<std::string()> now_ = [] { return "2026-01-01T00:00:00Z"; };
  std::function<void(const kube::Kind&)> on_change_;
  std::function<void(const WriteSeen&)> on_write_;
};

http::Response failure(int code, std::string_view reason, std::string_view message,
                       std::string_view cause_field = "", std::string_view cause_reason = "");

}  // namespace grapnel::simulation
