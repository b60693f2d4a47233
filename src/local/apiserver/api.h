// What all parts of the server share, and one request on its way through them.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/async.h"
#include "base/random.h"
#include "http/message.h"
#include "local/apiserver/admission/webhooks.h"
#include "local/apiserver/pod_backend.h"
#include "local/apiserver/registry.h"
#include "local/apiserver/request_info.h"
#include "local/apiserver/service_addresses.h"
#include "local/apiserver/status.h"
#include "local/store/store.h"

namespace grapnel::local {

struct Api {
  Api(Executor executor_in, Clock& clock_in, Store& store_in, uint64_t seed)
      : executor(std::move(executor_in)),
        clock(clock_in),
        store(store_in),
        random(seed),
        webhooks(executor),
        counted_creates(executor, 1) {}

  Executor executor;
  Clock& clock;
  Store& store;
  Registry registry;
  Random random;
  Webhooks webhooks;
  Semaphore counted_creates;  // see is_counted()
  std::string token;          // "": everyone may
  ServiceAddresses services;
  std::vector<Spawned> tasks;  // work that goes on behind an answer
  PodBackend* pods = nullptr;  // nullptr: logs, exec and the like are refused
};

struct Call {
  const http::Request* request = nullptr;
  http::Target target;
  RequestInfo info;
  TypePtr type;
  Accepted accepted;
  bool dry_run = false;
  std::string field_manager;
  std::string field_validation;       // Ignore, Warn, Strict
  std::vector<std::string> warnings;  // become Warning headers

  std::string_view query(std::string_view name) const { return target.get(name); }
  bool asks_for(std::string_view name) const { return query(name) == "true" || query(name) == "1"; }
  GroupResource what() const { return type->group_resource(); }
};

// An answer that is not a stream.
struct Reply {
  int code = 200;
  std::string body;
  std::string content_type = "application/json";
};

// The request's body as JSON, whatever format it came in; {} when there is none.
Answer<Json> decode_body(const Call& call);
// The object of a create or update: of the right kind and version, its fields checked.
Answer<Json> decode_object(Call& call);
// Fields that the kind does not know are removed, and refused or warned about as the request asks.
// A value of the wrong type is an error.
Answer<> check_fields(Call& call, Json& object);
// A server-side apply.
bool is_apply(const Call& call);
// The writer's name: the fieldManager parameter, or the first word of the User-Agent.
std::string manager_name(const Call& call);

// The bytes of a stored object as this type and form show it.
std::string encode_object(const Api& api, const Call& call, const Object& object);
std::string encode_json(const Api& api, const Call& call, const Json& object);

Task<Answer<Reply>> get_object(Api& api, Call& call);
Task<Answer<Reply>> list_objects(Api& api, Call& call);
Task<Answer<Reply>> create_object(Api& api, Call& call);
Task<Answer<Reply>> update_object(Api& api, Call& call);
Task<Answer<Reply>> patch_object(Api& api, Call& call);
Task<Answer<Reply>> delete_object(Api& api, Call& call);
Task<Answer<Reply>> delete_objects(Api& api, Call& call);

}  // namespace grapnel::local
