// The Kubernetes API as calls. It knows paths, verbs and errors. It keeps no state and retries
// nothing; the runtime does that.
//
// An answer that is a Status becomes an Error with its reason, causes and retry_after. An Error
// with `ambiguous` set means that the write may have taken effect.
#pragma once

#include <functional>
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
#include "kube/status.h"
#include "kube/url.h"

namespace grapnel::kube {

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
  // The longest silence, bookmarks come about each minute; nothing: a little more than `timeout`.
  std::optional<Duration> idle_timeout;
};

struct WriteOptions {
  std::string field_manager;  // "": the client's own
  bool dry_run = false;
  bool force = false;            // for apply: take over fields of other managers
  std::string field_validation;  // Ignore, Warn, Strict
  std::string subresource = {};  // of a create: "eviction", "binding" of the object that is named
  bool metadata_only = false;  // of the answer: spares the server writing all of it, and us reading
};

enum class PatchType { kMerge, kJson, kStrategic, kApply };

struct DeleteOptions {
  Uid uid;  // refused unless it is this one
  ResourceVersion resource_version = 0;
  std::string propagation;  // Background, Foreground, Orphan; "": the server's default
  std::optional<int64_t> grace_seconds;
  bool dry_run = false;
  bool metadata_only = false;  // of the answer
};

struct LogOptions {
  std::string container;
  bool follow = false;
  bool previous = false;
  bool timestamps = false;
  std::optional<int64_t> tail_lines;
  std::optional<Duration> since;
  std::optional<Time> since_time;  // instead of `since`; servers go by whole seconds
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
  // The server said 401 to a request with this Authorization header: do not use it again. False
  // when there is nothing else to try.
  virtual bool renew(std::string_view /*refused*/) { return false; }
};

using OpenWebSocket = std::function<Task<Result<std::unique_ptr<http::WebSocket>>>(
    http::Request request, std::vector<std::string> subprotocols)>;

struct ClientOptions {
  std::string server;  // https://127.0.0.1:6443, with a path prefix where there is one
  std::string field_manager = "grapnel";
  std::string user_agent = "grapnel";
  Duration timeout = seconds(30);
  // New objects and watches of built-in kinds go over the wire as protobuf, which costs
  // kube-apiserver less. Nothing of it is to be seen here, but fields that our tables lack are not
  // in a watch's objects.
  bool protobuf = false;
  // Called after each answer, for the metrics: the HTTP method, and code 0 when no answer came.
  std::function<void(std::string_view method, int code, Duration took)> observe;
  // For exec() and port_forward(), which need more than a transport; without it they fail.
  OpenWebSocket open_websocket;
  Clock* clock = &system_clock();
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
  // The channels of v5.channel.k8s.io; remote_command.h reads and writes them.
  Task<Result<std::unique_ptr<http::WebSocket>>> exec(Where pod, ExecOptions options);
  // SPDY in a WebSocket; port_forward.h speaks it.
  Task<Result<std::unique_ptr<http::WebSocket>>> port_forward(Where pod);

  // Any path below the server: discovery, /readyz, service and pod proxies. An answer of any code
  // is a success here; error_of_answer() makes an Error of it.
  Task<Result<http::Response>> raw(http::Request request);

  const ClientOptions& options() const { return options_; }

 private:
  template <class Answer>
  using Send = Task<Result<Answer>> (http::Transport::*)(const http::Request&);
  template <class Answer>
  Task<Result<Answer>> exchange(http::Request& request, Send<Answer> send,
                                bool (*unauthorized)(const Answer&));
  Task<Result<Json>> send_json(http::Request request);
  Task<Result<std::unique_ptr<http::BodyStream>>> open(http::Request request);
  Task<Result<std::unique_ptr<http::WebSocket>>> open_websocket(Where pod, Query query,
                                                                std::string protocol);
  http::Request request(std::string_view method, std::string_view path, const Query& query) const;
  bool speaks_protobuf(const Kind& kind) const;
  Task<Result<>> authorize(http::Request& request);
  Result<Json> read_json(const http::Request& request, const http::Response& answer) const;
  std::string describe(const http::Request& request) const;

  std::shared_ptr<http::Transport> transport_;
  std::shared_ptr<Credentials> credentials_;
  ClientOptions options_;
};

}  // namespace grapnel::kube
