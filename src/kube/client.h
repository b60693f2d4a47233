// The Kubernetes API as calls. It knows paths, verbs and errors; it keeps no state and retries
// nothing: that is the runtime's business.
//
// An answer that is a Status becomes an Error with its reason, causes and retry_after. An Error
// with `ambiguous` set means that the write may have taken effect.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/async.h"
#include "base/result.h"
#include "document/json.h"
#include "http/client.h"
#include "http/websocket.h"
#include "kube/kind.h"
#include "kube/meta.h"

namespace grapnel::kube {

// Which object of a kind; an empty name means the collection, an empty namespace all of them.
struct Where {
  std::string ns;
  std::string name;
  std::string subresource;  // "status", "scale", "log", "exec", "proxy" …
};

struct ListOptions {
  std::string ns;  // "": all namespaces
  std::string label_selector;
  std::string field_selector;
  std::string resource_version;  // "": the newest, "0": what the server has at hand
  std::string resource_version_match;
  int64_t limit = 0;
  std::string continue_token;
};

struct WatchOptions {
  std::string ns;
  std::string label_selector;
  std::string field_selector;
  std::string resource_version;
  bool send_initial_events = false;  // watch-list
  Duration timeout = minutes(5);     // asked of the server
};

struct WriteOptions {
  std::string field_manager;  // "": the client's own
  bool dry_run = false;
  bool force = false;            // for apply: take over fields of other managers
  std::string field_validation;  // Ignore, Warn, Strict
};

enum class PatchType { kMerge, kJson, kStrategic, kApply };

struct DeleteOptions {
  Uid uid;  // refused unless it is this one
  ResourceVersion resource_version = 0;
  std::string propagation;  // Background, Foreground, Orphan; "": the server's default
  std::optional<int64_t> grace_seconds;
  bool dry_run = false;
};

struct LogOptions {
  std::string container;
  bool follow = false;
  bool previous = false;
  bool timestamps = false;
  std::optional<int64_t> tail_lines;
  std::optional<Duration> since;
};

struct ExecOptions {
  std::string container;
  std::vector<std::string> command;
  bool stdin_open = false;
  bool tty = false;
};

// Adds what proves who we are to a request. May refresh a token or run a plugin first.
class Credentials {
 public:
  virtual ~Credentials() = default;
  virtual Task<Result<>> authorize(http::Request& request) = 0;
  // The server said 401: forget what is cached. False when there is nothing to renew.
  virtual bool renew() { return false; }
};

struct ClientOptions {
  std::string server;  // https://127.0.0.1:6443, with a path prefix where there is one
  std::string field_manager = "grapnel";
  std::string user_agent = "grapnel";
  Duration timeout = seconds(30);
  // Called after each answer, for the metrics; code 0 when none came.
  std::function<void(std::string_view verb, int code, Duration took)> observe;
};

class Client {
 public:
  // The transport is the seam to the network; credentials may be null.
  Client(std::shared_ptr<http::Transport> transport, std::shared_ptr<Credentials> credentials,
         ClientOptions options);

  Task<Result<Json>> get(Kind kind, Where where);
  Task<Result<Json>> list(Kind kind, ListOptions options);
  // The raw body, to be split item by item.
  Task<Result<std::unique_ptr<http::BodyStream>>> open_list(Kind kind, ListOptions options);
  // Newline-delimited events. A refusal (410, 403 …) is an Error.
  Task<Result<std::unique_ptr<http::BodyStream>>> open_watch(Kind kind, WatchOptions options);

  // Namespace and name are taken from the object.
  Task<Result<Json>> create(Kind kind, Json object, WriteOptions options = {});
  Task<Result<Json>> update(Kind kind, Json object, std::string subresource = "",
                            WriteOptions options = {});
  Task<Result<Json>> patch(Kind kind, Where where, PatchType type, Json body,
                           WriteOptions options = {});
  // The object as it was, or the Status of the deletion.
  Task<Result<Json>> remove(Kind kind, Where where, DeleteOptions options = {});
  Task<Result<Json>> remove_collection(Kind kind, ListOptions which, DeleteOptions options = {});

  Task<Result<std::unique_ptr<http::BodyStream>>> logs(Where pod, LogOptions options);
  // The channels of v5.channel.k8s.io: the first byte of each message is the channel.
  Task<Result<std::unique_ptr<http::WebSocket>>> exec(Where pod, ExecOptions options);

  // Any path below the server: discovery, /readyz, service and pod proxies.
  Task<Result<http::Response>> raw(http::Request request);

  const ClientOptions& options() const { return options_; }

 private:
  Task<Result<http::Response>> send(std::string_view verb, http::Request request);
  Task<Result<Json>> send_json(std::string_view verb, http::Request request);
  Task<Result<std::unique_ptr<http::BodyStream>>> open(std::string_view verb,
                                                       http::Request request);

  std::shared_ptr<http::Transport> transport_;
  std::shared_ptr<Credentials> credentials_;
  ClientOptions options_;
};

// The Error that a Status answer stands for.
Error error_of_status(int code, const Json& status);

}  // namespace grapnel::kube
