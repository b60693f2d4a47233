// The runtime as commands: caches that follow a kind, and an operator at work.
//
//   follow   kind, namespace       tells each change until it is cancelled
//   dump     target                what the cache of that `follow` holds now
//   operate  lease                 keeps Echoes (tests/simulation/echo.h) until `stop`
//   status   target                of that `operate`
//   stop     target
#include <map>
#include <set>

#include "runtime/informer.h"
#include "runtime/manager.h"
#include "tests/conformance/probe.h"
#include "tests/simulation/echo.h"

namespace grapnel::probe {
namespace {

// Any object: its identity, and the rest as text so that every change is one.
struct Thing {
  kube::Meta meta;
  std::string rest;
  bool operator==(const Thing&) const = default;
};

Result<Thing> decode_thing(JsonView object) {
  auto meta = kube::decode_meta(object);
  if (!meta) return fail(meta.error());
  Json rest = object.to_json();
  rest.as_object().erase("metadata");
  return Thing{std::move(*meta), to_text(rest)};
}

// What later commands may ask of earlier ones, by id.
struct Shared {
  std::map<int64_t, runtime::Cache<Thing>*> caches;
  std::map<int64_t, runtime::Manager*> managers;
};

template <class T>
class Entry {
 public:
  Entry(std::map<int64_t, T*>& all, const Json& command, T& value)
      : all_(all), id_(int_or(find(command, "id"))) {
    all_[id_] = &value;
  }
  Entry(const Entry&) = delete;
  Entry& operator=(const Entry&) = delete;
  ~Entry() { all_.erase(id_); }

 private:
  std::map<int64_t, T*>& all_;
  int64_t id_;
};

template <class T>
T* target_of(const std::map<int64_t, T*>& all, const Json& command, const Reply& reply) {
  const auto found = all.find(int_or(find(command, "target")));
  if (found != all.end()) return found->second;
  reply.error({.reason = Reason::kUsage, .message = "no such target"});
  return nullptr;
}

Json json_of(const Thing* thing) {
  if (thing == nullptr) return nullptr;
  return JsonObject{{"name", thing->meta.key.name},
                    {"uid", thing->meta.uid.text()},
                    {"version", std::to_string(thing->meta.resource_version)}};
}

Task<> follow(Session& session, Json command, Reply reply, std::shared_ptr<Shared> shared) {
  Random random(1);
  runtime::Informer<Thing> informer(
      session.client(), system_clock(), random,
      {.kind = kind_of(command),
       .filter = {.ns = text_of(command, "namespace"),
                  .label_selector = text_of(command, "label_selector")}},
      decode_thing);
  informer.cache().add_handler([&reply](const Thing* before, const Thing* after) {
    reply.event(JsonObject{{"before", json_of(before)}, {"after", json_of(after)}});
  });
  informer.on_synced([&reply] { reply.event(JsonObject{{"synced", true}}); });
  const Entry entry(shared->caches, command, informer.cache());
  co_await informer.run();
}

Task<> dump(Session&, Json command, Reply reply, std::shared_ptr<Shared> shared) {
  const auto* cache = target_of(shared->caches, command, reply);
  if (cache == nullptr) co_return;
  JsonArray items;
  for (const auto& thing : cache->all()) items.push_back(json_of(thing.get()));
  reply.ok(JsonObject{{"items", std::move(items)}});
}

std::optional<runtime::LeaseOptions> lease_of(const Json& command) {
  const Json* lease = find(command, "lease");
  if (lease == nullptr) return std::nullopt;
  const auto length = [&](std::string_view name) {
    return milliseconds(int_or(find(*lease, name)));
  };
  return runtime::LeaseOptions{.ns = text_of(*lease, "namespace"),
                               .name = text_of(*lease, "name"),
                               .identity = text_of(*lease, "identity"),
                               .lease = length("lease_ms"),
                               .renew = length("renew_ms"),
                               .retry = length("retry_ms")};
}

Task<> operate(Session& session, Json command, Reply reply, std::shared_ptr<Shared> shared) {
  Random random(static_cast<uint64_t>(system_clock().now().time_since_epoch().count()));
  runtime::Manager manager(session.executor, session.client(), system_clock(), random,
                           {.lease = lease_of(command)});
  const auto subject = simulation::make_echo_subject();
  const auto parts = subject->install(manager, "");
  const Entry entry(shared->managers, command, manager);
  auto ended = co_await manager.run();
  if (ended) {
    reply.ok({});
  } else {
    reply.error(ended.error());
  }
}

Task<> status(Session&, Json command, Reply reply, std::shared_ptr<Shared> shared) {
  auto* manager = target_of(shared->managers, command, reply);
  if (manager == nullptr) co_return;
  reply.ok(JsonObject{{"synced", manager->synced()}, {"working", manager->working()}});
}

Task<> stop(Session&, Json command, Reply reply, std::shared_ptr<Shared> shared) {
  auto* manager = target_of(shared->managers, command, reply);
  if (manager == nullptr) co_return;
  manager->stop();
  reply.ok({});
}

}  // namespace

void add_runtime_commands(Commands& commands) {
  const auto shared = std::make_shared<Shared>();
  const auto add = [&](const char* name,
                       Task<> (*run)(Session&, Json, Reply, std::shared_ptr<Shared>)) {
    commands[name] = [run, shared](Session& session, Json command, Reply reply) {
      return run(session, std::move(command), reply, shared);
    };
  };
  add("follow", follow);
  add("dump", dump);
  add("operate", operate);
  add("status", status);
  add("stop", stop);
}

}  // namespace grapnel::probe
