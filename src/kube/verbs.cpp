// The verbs of the API: what each puts into its request.
#include <algorithm>

#include "kube/client.h"
#include "kube/types/protobuf.h"
#include "kube/types/type_info.h"

namespace grapnel::kube {
namespace {

constexpr std::string_view kJson = "application/json";
// Managed fields can be half of an object and no cache reads them. Servers that do not know the
// parameter answer to the plain type.
constexpr std::string_view kJsonForCaches =
    "application/json;drop=metadata.managedFields,application/json";
constexpr std::string_view kJsonOfMetadata =
    "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json";
constexpr std::string_view kProtobufOfMetadata =
    "application/vnd.kubernetes.protobuf;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,"
    "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json";
// Servers that write watches only as JSON answer with JSON.
constexpr std::string_view kProtobufForCaches =
    "application/vnd.kubernetes.protobuf;stream=watch,application/json";
// The API server gives up a list after a minute. If we stopped waiting earlier, we would only make
// it repeat its work.
constexpr Duration kListTimeout = seconds(65);

using Stream = std::unique_ptr<http::BodyStream>;

std::string_view content_type(PatchType type) {
  switch (type) {
    case PatchType::kMerge:
      return "application/merge-patch+json";
    case PatchType::kJson:
      return "application/json-patch+json";
    case PatchType::kStrategic:
      return "application/strategic-merge-patch+json";
    case PatchType::kApply:
      return "application/apply-patch+yaml";  // JSON is YAML
  }
  return kJson;
}

// The object goes: only its text is kept while we wait for the answer.
void set_body(http::Request& request, Json body, std::string_view type = kJson) {
  request.headers.set("Content-Type", std::string(type));
  request.body = to_text(body);
  request.body.shrink_to_fit();
}

void set_object(http::Request& request, Json object, bool protobuf) {
  auto encoded = protobuf ? encode_protobuf(object) : std::nullopt;
  if (!encoded) return set_body(request, std::move(object));
  request.headers.set("Content-Type", std::string(kProtobuf));
  request.body = std::move(*encoded);
  request.body.shrink_to_fit();
}

void ask_for_metadata(http::Request& request, bool protobuf) {
  request.headers.set("Accept", std::string(protobuf ? kProtobufOfMetadata : kJsonOfMetadata));
}

Query list_query(const ListOptions& options) {
  Query query;
  query.add("labelSelector", options.label_selector)
      .add("fieldSelector", options.field_selector)
      .add("resourceVersion", options.resource_version)
      .add("resourceVersionMatch", options.resource_version_match)
      .add("continue", options.continue_token);
  if (options.limit > 0) query.add("limit", options.limit);
  return query;
}

Query watch_query(const WatchOptions& options) {
  Query query;
  query.add_flag("watch", true)
      .add_flag("allowWatchBookmarks", true)
      .add("labelSelector", options.label_selector)
      .add("fieldSelector", options.field_selector)
      .add("resourceVersion", options.resource_version);
  if (options.send_initial_events) {
    query.add_flag("sendInitialEvents", true).add("resourceVersionMatch", "NotOlderThan");
  }
  const int64_t timeout = duration_cast<seconds>(options.timeout).count();
  return query.add("timeoutSeconds", std::max<int64_t>(1, timeout));
}

Query write_query(const WriteOptions& options, const ClientOptions& client) {
  Query query;
  query.add("fieldManager",
            options.field_manager.empty() ? client.field_manager : options.field_manager);
  if (options.dry_run) query.add("dryRun", "All");
  return query.add("fieldValidation", options.field_validation);
}

Query log_query(const LogOptions& options) {
  Query query;
  query.add("container", options.container)
      .add_flag("follow", options.follow)
      .add_flag("previous", options.previous)
      .add_flag("timestamps", options.timestamps);
  if (options.tail_lines) query.add("tailLines", *options.tail_lines);
  if (options.since_time) {
    query.add("sinceTime", format_time(*options.since_time));
  } else if (options.since) {
    // The server refuses 0: it means "since now".
    const int64_t since = duration_cast<seconds>(*options.since).count();
    query.add("sinceSeconds", std::max<int64_t>(1, since));
  }
  return query;
}

Json delete_body(const DeleteOptions& options) {
  JsonObject body{{"kind", "DeleteOptions"}, {"apiVersion", "v1"}};
  JsonObject preconditions;
  if (!options.uid.empty()) preconditions["uid"] = options.uid.text();
  if (options.resource_version != 0) {
    preconditions["resourceVersion"] = std::to_string(options.resource_version);
  }
  if (!preconditions.empty()) body["preconditions"] = std::move(preconditions);
  if (!options.propagation.empty()) body["propagationPolicy"] = options.propagation;
  if (options.grace_seconds) body["gracePeriodSeconds"] = *options.grace_seconds;
  if (options.dry_run) body["dryRun"] = JsonArray{"All"};
  return body;
}

// Callers go through the items as they are: whatever answered, they are there.
Task<Result<Json>> with_items(Task<Result<Json>> answer) {
  auto list = co_await std::move(answer);
  if (!list) co_return list;
  Json& items = list->as_object()["items"];
  if (items.is_null()) items = JsonArray();  // as some servers write that there are none
  if (items.is_array()) co_return list;
  co_return fail(Reason::kDecode, "the answer is no list: its items are no array");
}

Where where_of(const Json& object) {
  return {.ns = std::string(string_or(at(object, "metadata", "namespace"))),
          .name = std::string(string_or(at(object, "metadata", "name")))};
}

// The verbs themselves are not coroutines: with a thousand under way, each would keep a frame.
template <class T>
Task<Result<T>> refused(Failure failure) {
  co_return failure;
}

}  // namespace

// For kinds defined by others, a server speaks only JSON.
bool Client::speaks_protobuf(const Kind& kind) const {
  return options_.protobuf && type_of_kind(kind.group, kind.version, kind.kind) != nullptr;
}

Task<Result<Json>> Client::get(Kind kind, Where where) {
  const auto path = object_path(kind, where);
  if (!path) return refused<Json>(fail(path.error()));
  return send_json(request("GET", *path, {}));
}

Task<Result<Json>> Client::list(Kind kind, ListOptions options) {
  const auto path = collection_path(kind, options.ns);
  if (!path) return refused<Json>(fail(path.error()));
  http::Request ask = request("GET", *path, list_query(options));
  ask.headers.set("Accept", std::string(kJsonForCaches));
  ask.timeout = std::max(ask.timeout, kListTimeout);
  return with_items(send_json(std::move(ask)));
}

Task<Result<Stream>> Client::open_list(Kind kind, ListOptions options) {
  const auto path = collection_path(kind, options.ns);
  if (!path) return refused<Stream>(fail(path.error()));
  http::Request ask = request("GET", *path, list_query(options));
  ask.headers.set("Accept", std::string(kJsonForCaches));
  ask.timeout = std::max(ask.timeout, kListTimeout);
  ask.idle_timeout = ask.timeout;
  ask.pooled = true;
  return open(std::move(ask));
}

Task<Result<Stream>> Client::open_watch(Kind kind, WatchOptions options) {
  const auto path = collection_path(kind, options.ns);
  if (!path) return refused<Stream>(fail(path.error()));
  http::Request ask = request("GET", *path, watch_query(options));
  ask.headers.set("Accept",
                  std::string(speaks_protobuf(kind) ? kProtobufForCaches : kJsonForCaches));
  ask.idle_timeout = options.idle_timeout.value_or(options.timeout + seconds(5));
  return open(std::move(ask));
}

Task<Result<Json>> Client::create(Kind kind, Json object, WriteOptions options) {
  Where where = where_of(object);
  where.subresource = options.subresource;
  if (kind.namespaced && where.ns.empty()) {
    return refused<Json>(
        fail(Reason::kUsage, "a {} is created without metadata.namespace", kind.kind));
  }
  const auto path =
      where.subresource.empty() ? collection_path(kind, where.ns) : object_path(kind, where);
  if (!path) return refused<Json>(fail(path.error()));
  http::Request ask = request("POST", *path, write_query(options, options_));
  if (options.metadata_only) ask_for_metadata(ask, speaks_protobuf(kind));
  set_object(ask, std::move(object), speaks_protobuf(kind));
  return send_json(std::move(ask));
}

Task<Result<Json>> Client::update(Kind kind, Json object, std::string subresource,
                                  WriteOptions options) {
  Where where = where_of(object);
  where.subresource = std::move(subresource);
  const auto path = object_path(kind, where);
  if (!path) return refused<Json>(fail(path.error()));
  http::Request ask = request("PUT", *path, write_query(options, options_));
  if (options.metadata_only) ask_for_metadata(ask, speaks_protobuf(kind));
  set_body(ask, std::move(object));
  return send_json(std::move(ask));
}

Task<Result<Json>> Client::patch(Kind kind, Where where, PatchType type, Json body,
                                 WriteOptions options) {
  const auto path = object_path(kind, where);
  if (!path) return refused<Json>(fail(path.error()));
  Query query = write_query(options, options_);
  query.add_flag("force", type == PatchType::kApply && options.force);
  http::Request ask = request("PATCH", *path, query);
  if (options.metadata_only) ask_for_metadata(ask, speaks_protobuf(kind));
  set_body(ask, std::move(body), content_type(type));
  return send_json(std::move(ask));
}

Task<Result<Json>> Client::remove(Kind kind, Where where, DeleteOptions options) {
  const auto path = object_path(kind, where);
  if (!path) return refused<Json>(fail(path.error()));
  http::Request ask = request("DELETE", *path, {});
  if (options.metadata_only) ask_for_metadata(ask, speaks_protobuf(kind));
  set_body(ask, delete_body(options));
  return send_json(std::move(ask));
}

Task<Result<Json>> Client::remove_collection(Kind kind, ListOptions which, DeleteOptions options) {
  if (kind.namespaced && which.ns.empty()) {
    return refused<Json>(
        fail(Reason::kUsage, "all {} are to be deleted without a namespace", kind.plural));
  }
  const auto path = collection_path(kind, which.ns);
  if (!path) return refused<Json>(fail(path.error()));
  http::Request ask = request("DELETE", *path, list_query(which));
  set_body(ask, delete_body(options));
  ask.timeout = std::max(ask.timeout, kListTimeout);
  return send_json(std::move(ask));
}

Task<Result<Stream>> Client::logs(Where pod, LogOptions options) {
  pod.subresource = "log";
  const auto path = object_path(kinds::kPod, pod);
  if (!path) return refused<Stream>(fail(path.error()));
  http::Request ask = request("GET", *path, log_query(options));
  ask.headers.set("Accept", "*/*");
  if (options.follow) {
    // It may be silent for days, and servers send the head of the answer with its first line.
    ask.timeout = hours(24);
  } else {
    ask.idle_timeout = kListTimeout;
  }
  return open(std::move(ask));
}

}  // namespace grapnel::kube
