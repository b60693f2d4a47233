// What stands at the other end of the network: it answers requests as an API server does, at once.
// No network and no chance in here: those are the world's.
//
// ApiModel is the one most schedules run against; ours.h puts the laptop's own API server here.
// What subjects and invariants ask of the state (find(), all(), exists()) never goes over the wire.
#pragma once

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

struct ServedKind {
  kube::Kind kind;
  bool has_status = false;   // a status subresource, and generations
  bool is_graceful = false;  // once deleted it stays until its kubelet lets it go, as a pod does
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

class Server {
 public:
  using JsonPtr = std::shared_ptr<const Json>;
  explicit Server(std::vector<ServedKind> kinds);
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;
  virtual ~Server() = default;

  // Everything but watches. `who` made the request.
  virtual http::Response handle(const http::Request& request, const std::string& who) = 0;

  // A watch, for as long as it is kept.
  class Watch {
   public:
    virtual ~Watch() = default;
    // A bookmark of now; "" where the server sends them itself.
    virtual std::string bookmark() { return ""; }
  };
  struct WatchAnswer {
    std::optional<http::Response> refused;
    http::Headers headers = {};
    std::unique_ptr<Watch> watch = nullptr;
  };
  // Each piece that the server sends goes to `send`; an empty one is the end.
  using Send = std::function<void(std::string piece)>;
  virtual WatchAnswer watch(const http::Request& request, Send send) = 0;
  static bool is_watch(const http::Target& target) { return target.get("watch") == "true"; }
  static bool is_list(const http::Target& target);

  // ---- faults of a server, as far as it can have them ----
  virtual void forget_history() {}  // watches from before this are Expired
  virtual void forget_pages() {}
  // Whether a webhook does not answer now.
  void set_webhooks_down(std::function<bool()> down) { webhooks_down_ = std::move(down); }

  // Lets go on whatever waited for time to pass. True when there was something.
  virtual bool poll() { return false; }
  void on_write(std::function<void(const WriteSeen&)> f) { on_write_ = std::move(f); }

  // ---- what the cluster's own programs do ----
  // With a body that is sent as it is: an object, a merge patch, or the options of a delete.
  http::Response ask(std::string_view who, std::string method, std::string target,
                     const Json& body = JsonObject());
  // What the garbage collector would do next: delete an orphan, or a dependent of what is deleted
  // in the foreground, or let that go once it has no dependents.
  bool collect_one_orphan();
  void finish_deletion(const kube::Kind& kind, const Json& object);  // by the kubelet

  // ---- for users and invariants ----
  const Json* find(const kube::Kind& kind, const kube::Key& key) const;
  std::vector<const Json*> all(const kube::Kind& kind) const;
  bool exists(std::string_view uid) const { return uids_.contains(uid); }
  uint64_t version() const { return version_; }
  const std::vector<ServedKind>& kinds() const { return kinds_; }

 protected:
  using Objects = std::map<kube::Key, JsonPtr>;
  Objects& objects(const kube::Kind& kind);
  const Objects* objects_if_any(const kube::Kind& kind) const;
  // The object now; nullptr: it is gone. Returns what was there.
  JsonPtr keep(const kube::Kind& kind, const kube::Key& key, JsonPtr object);
  void tell_write(const WriteSeen& write) const {
    if (on_write_) on_write_(write);
  }

  std::vector<ServedKind> kinds_;
  uint64_t version_ = 100;
  std::function<bool()> webhooks_down_;

 private:
  bool collect(const kube::Kind& kind, const Json& object);
  bool collect_in_foreground(const kube::Kind& kind, const Json& object);

  std::vector<Objects> objects_;  // by kind, as in kinds_
  std::map<std::string, int, std::less<>> uids_;
  std::function<void(const WriteSeen&)> on_write_;
};

// "/apis/batch/v1/namespaces/default/jobs/x"
std::string path_of(const kube::Kind& kind, const Json& object);
std::string collection_of(const kube::Kind& kind, std::string_view ns = "default");

// What everybody here reads off objects.
std::string_view meta_text(const Json& object, std::string_view name);
std::string_view label(const Json& object, std::string_view key);
kube::Key key_of(const Json& object);
bool is_going(const Json& object);
bool has_finalizers(const Json& object);

}  // namespace grapnel::simulation
