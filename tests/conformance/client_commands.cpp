// The verbs of kube/client.h as commands.
#include <boost/json/array.hpp>

#include "tests/conformance/probe.h"

namespace grapnel::probe {
namespace {

using namespace kube;

Where where_of(const Json& command) {
  return {text_of(command, "namespace"), text_of(command, "name"), text_of(command, "subresource")};
}

Json member(const Json& command, std::string_view key) {
  const Json* value = find(command, key);
  return value == nullptr ? Json() : *value;
}

int64_t number_of(const Json& command, std::string_view key) {
  return int_or(find(command, key));
}

bool flag_of(const Json& command, std::string_view key) {
  return bool_or(find(command, key));
}

Duration seconds_of(const Json& command, std::string_view key, int64_t fallback) {
  return seconds(int_or(find(command, key), fallback));
}

ListOptions list_options(const Json& command) {
  return {.ns = text_of(command, "namespace"),
          .label_selector = text_of(command, "label_selector"),
          .field_selector = text_of(command, "field_selector"),
          .resource_version = text_of(command, "resource_version"),
          .resource_version_match = text_of(command, "resource_version_match"),
          .limit = number_of(command, "limit"),
          .continue_token = text_of(command, "continue")};
}

WriteOptions write_options(const Json& command) {
  return {.field_manager = text_of(command, "field_manager"),
          .dry_run = flag_of(command, "dry_run"),
          .force = flag_of(command, "force"),
          .field_validation = text_of(command, "field_validation")};
}

DeleteOptions delete_options(const Json& command) {
  DeleteOptions options{
      .uid = Uid(text_of(command, "uid")),
      .resource_version = parse_resource_version(text_of(command, "resource_version")),
      .propagation = text_of(command, "propagation"),
      .dry_run = flag_of(command, "dry_run")};
  if (find(command, "grace_seconds") != nullptr) {
    options.grace_seconds = number_of(command, "grace_seconds");
  }
  return options;
}

PatchType patch_type(const Json& command) {
  const std::string type = text_of(command, "type");
  if (type == "json") return PatchType::kJson;
  if (type == "strategic") return PatchType::kStrategic;
  if (type == "apply") return PatchType::kApply;
  return PatchType::kMerge;
}

// Each piece as an event; the length of all at the end.
Task<> pass_on(Result<std::unique_ptr<http::BodyStream>> stream, Reply reply) {
  if (!stream) co_return reply.error(stream.error());
  reply.event(JsonObject{{"open", true}});
  int64_t length = 0;
  for (;;) {
    auto piece = co_await (*stream)->read();
    if (!piece) co_return reply.error(piece.error());
    if (piece->empty()) co_return reply.ok(JsonObject{{"length", length}});
    length += static_cast<int64_t>(piece->size());
    reply.event(JsonObject{{"data", *piece}});
  }
}

Task<> get(Session& session, Json command, Reply reply) {
  reply.result(co_await session.client().get(kind_of(command), where_of(command)));
}

Task<> list(Session& session, Json command, Reply reply) {
  reply.result(co_await session.client().list(kind_of(command), list_options(command)));
}

Task<> open_list(Session& session, Json command, Reply reply) {
  co_await pass_on(co_await session.client().open_list(kind_of(command), list_options(command)),
                   reply);
}

Task<> watch(Session& session, Json command, Reply reply) {
  WatchOptions options{.ns = text_of(command, "namespace"),
                       .label_selector = text_of(command, "label_selector"),
                       .field_selector = text_of(command, "field_selector"),
                       .resource_version = text_of(command, "resource_version"),
                       .send_initial_events = flag_of(command, "send_initial_events"),
                       .timeout = seconds_of(command, "timeout", 300)};
  if (find(command, "idle_timeout") != nullptr) {
    options.idle_timeout = seconds_of(command, "idle_timeout", 0);
  }
  co_await pass_on(co_await session.client().open_watch(kind_of(command), options), reply);
}

Task<> create(Session& session, Json command, Reply reply) {
  reply.result(co_await session.client().create(kind_of(command), member(command, "object"),
                                                write_options(command)));
}

Task<> update(Session& session, Json command, Reply reply) {
  reply.result(co_await session.client().update(kind_of(command), member(command, "object"),
                                                text_of(command, "subresource"),
                                                write_options(command)));
}

Task<> patch(Session& session, Json command, Reply reply) {
  reply.result(co_await session.client().patch(kind_of(command), where_of(command),
                                               patch_type(command), member(command, "patch"),
                                               write_options(command)));
}

Task<> remove(Session& session, Json command, Reply reply) {
  reply.result(co_await session.client().remove(kind_of(command), where_of(command),
                                                delete_options(command)));
}

Task<> remove_collection(Session& session, Json command, Reply reply) {
  reply.result(co_await session.client().remove_collection(
      kind_of(command), list_options(command), delete_options(member(command, "options"))));
}

Task<> logs(Session& session, Json command, Reply reply) {
  LogOptions options{.container = text_of(command, "container"),
                     .follow = flag_of(command, "follow"),
                     .previous = flag_of(command, "previous"),
                     .timestamps = flag_of(command, "timestamps")};
  if (find(command, "tail_lines") != nullptr) options.tail_lines = number_of(command, "tail_lines");
  if (find(command, "since") != nullptr) options.since = seconds_of(command, "since", 0);
  co_await pass_on(co_await session.client().logs(where_of(command), options), reply);
}

Task<> exec(Session& session, Json command, Reply reply) {
  ExecOptions options{.container = text_of(command, "container")};
  const Json words = member(command, "command");
  if (words.is_array()) {
    for (const Json& word : words.get_array()) options.command.emplace_back(string_or(&word));
  }
  auto socket = co_await session.client().exec(where_of(command), options);
  if (!socket) co_return reply.error(socket.error());
  for (;;) {
    auto message = co_await (*socket)->read();
    if (!message) co_return reply.error(message.error());
    if (message->closed) co_return reply.ok({});
    if (message->data.empty()) continue;
    reply.event(JsonObject{{"channel", static_cast<int>(message->data[0])},
                           {"data", message->data.substr(1)}});
  }
}

Task<> raw(Session& session, Json command, Reply reply) {
  auto answer = co_await session.client().raw({.method = text_of(command, "method"),
                                               .target = text_of(command, "path"),
                                               .body = text_of(command, "body")});
  if (!answer) co_return reply.error(answer.error());
  reply.ok(JsonObject{{"status", answer->status}, {"body", answer->body}});
}

}  // namespace

void add_client_commands(Commands& commands) {
  commands.insert({{"get", &get},
                   {"list", &list},
                   {"open_list", &open_list},
                   {"watch", &watch},
                   {"create", &create},
                   {"update", &update},
                   {"patch", &patch},
                   {"delete", &remove},
                   {"delete_collection", &remove_collection},
                   {"logs", &logs},
                   {"exec", &exec},
                   {"raw", &raw}});
}

}  // namespace grapnel::probe
