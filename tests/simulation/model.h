// What a Kubernetes API server does to objects, in memory and at once: versions, preconditions,
// finalizers, admission, selections, lists in pages, watches with a history, JSON and protobuf.
#pragma once

#include "tests/simulation/selection.h"
#include "tests/simulation/server.h"
#include "tests/simulation/webhooks.h"

namespace grapnel::simulation {

class ApiModel final : public Server {
 public:
  explicit ApiModel(std::vector<ServedKind> kinds, WebhookConfigurations webhooks = {});
  ~ApiModel() override;

  http::Response handle(const http::Request& request, const std::string& who) override;
  WatchAnswer watch(const http::Request& request, Send send) override;
  void forget_history() override { oldest_ = version_; }
  void forget_pages() override { pages_.clear(); }

  void set_watch_list(bool supported) { watch_list_ = supported; }
  void set_wall_time(std::function<std::string()> now) { now_ = std::move(now); }

 private:
  class OpenWatch;
  struct Path {
    const ServedKind* kind = nullptr;
    kube::Key key;
    std::string subresource;
  };
  // What came with a write.
  struct Sender {
    const std::string& who;
    std::string_view accept;
  };
  struct Change {
    uint64_t version = 0;
    JsonPtr before;
    JsonPtr after;  // of a deletion: the last state, with the deletion's version
    bool deleted = false;
  };

  std::optional<Path> route(std::string_view path) const;
  http::Response get(const Path& path) const;
  http::Response list(const Path& path, const http::Target& target);
  http::Response create(const Path& path, Json object, const Sender& sender);
  http::Response put(const Path& path, Json object, const Sender& sender);
  http::Response patch(const Path& path, const http::Request& request, const Sender& sender);
  http::Response apply(const Path& path, Json body, const Sender& sender);
  http::Response bind(const Path& path, const Json& binding, const Sender& sender);
  http::Response erase(const Path& path, const Json& options, const Sender& sender);

  http::Response store(const Path& path, Json after, const Sender& sender);
  void begin_deletion(const Path& path, const Sender& sender, bool in_foreground);
  void remove(const Path& path, const Sender& sender);
  void record(const kube::Kind& kind, Change change);
  std::vector<Change>& history(const kube::Kind& kind);

  Webhooks webhooks_;
  std::vector<std::vector<Change>> history_;  // by kind
  std::vector<OpenWatch*> watches_;
  std::map<std::string, std::pair<uint64_t, std::vector<std::string>>, std::less<>> pages_;
  uint64_t oldest_ = 0;
  uint64_t uids_ = 0;
  uint64_t tokens_ = 0;
  bool watch_list_ = true;
  std::function<std::string()> now_ = [] { return "2026-01-01T00:00:00Z"; };
};

http::Response failure(int code, std::string_view reason, std::string_view message,
                       std::string_view cause_field = "", std::string_view cause_reason = "");

}  // namespace grapnel::simulation
