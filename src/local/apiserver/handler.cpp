#include "local/apiserver/handler.h"

#include <fmt/format.h>

#include "base/log.h"
#include "base/strings.h"
#include "local/apiserver/discovery.h"
#include "local/apiserver/node_types.h"
#include "local/apiserver/openapi.h"
#include "local/apiserver/reply.h"
#include "local/apiserver/subresources.h"
#include "local/apiserver/version.h"
#include "local/apiserver/watch.h"

namespace grapnel::local {
namespace {

bool is_health(std::string_view path) {
  return path == "/healthz" || path == "/livez" || path == "/readyz" ||
         path.starts_with("/healthz/") || path.starts_with("/livez/") ||
         path.starts_with("/readyz/");
}

// Takes as long for a wrong token as for a right one.
bool same_secret(std::string_view a, std::string_view b) {
  unsigned difference = a.size() == b.size() ? 0 : 1;
  for (size_t i = 0; i < a.size(); ++i) {
    difference |= static_cast<unsigned char>(a[i]) ^
                  static_cast<unsigned char>(b.empty() ? 0 : b[i % b.size()]);
  }
  return difference == 0;
}

bool is_allowed(const Api& api, const http::Request& request, std::string_view path) {
  if (api.token.empty() || is_health(path) || path == "/version") return true;
  std::string_view header = request.headers.get("authorization");
  constexpr std::string_view kBearer = "bearer ";
  if (header.size() <= kBearer.size() || to_lower(header.substr(0, kBearer.size())) != kBearer) {
    return false;
  }
  return same_secret(trim(header.substr(kBearer.size())), api.token);
}

Reply page_not_found() {
  return Reply{
      .code = 404, .body = "404 page not found\n", .content_type = "text/plain; charset=utf-8"};
}

// The parameters that all writes share.
Answer<> parse_write_options(Call& call) {
  const auto kind = [&call] {
    if (call.info.verb == "patch") return "PatchOptions";
    if (call.info.verb == "update") return "UpdateOptions";
    return call.info.verb == "create" ? "CreateOptions" : "DeleteOptions";
  };
  const std::string_view dry = call.query("dryRun");
  if (call.target.has("dryRun") && dry != "All") return Refusal(invalid_dry_run(kind(), dry));
  call.dry_run = dry == "All";
  call.field_validation = call.query("fieldValidation");
  const std::string& validation = call.field_validation;
  if (!validation.empty() && validation != "Ignore" && validation != "Warn" &&
      validation != "Strict") {
    return Refusal(invalid(
        "meta.k8s.io", kind(), "",
        {Cause{.field = "fieldValidation",
               .message = fmt::format("Unsupported value: {}: supported values: \"\", \"Ignore\", "
                                      "\"Strict\", \"Warn\"",
                                      in_quotes(validation)),
               .reason = "FieldValueNotSupported"}}));
  }
  call.field_manager = call.query("fieldManager");
  if (call.field_manager.size() > 128) {
    FieldErrors errors;
    errors.too_long("fieldManager", 128);
    return Refusal(invalid("meta.k8s.io", kind(), "", errors.take()));
  }
  return {};
}

// Which methods are possible: with a name, with a namespace, or without.
bool is_possible(const Call& call) {
  const RequestInfo& info = call.info;
  if (!info.subresource.empty()) return true;
  if (info.verb == "update" || info.verb == "patch") return !info.name.empty();
  if (info.verb == "create" && !info.name.empty()) return false;
  const bool writes = info.verb == "create" || info.verb == "deletecollection";
  return !writes || !call.type->namespaced || !info.ns.empty();
}

// Whether the path names something this server has.
bool is_served(const Call& call) {
  if (!call.type) return false;
  const RequestInfo& info = call.info;
  if (!call.type->namespaced && !info.ns.empty() && info.plural != "namespaces") return false;
  return info.subresource.empty() || call.type->subresource(info.subresource) != nullptr;
}

Task<Answer<Reply>> dispatch_subresource(Api& api, Call& call) {
  const std::string& sub = call.info.subresource;
  const std::string& verb = call.info.verb;
  const Subresource* below = call.type->subresource(sub);
  const bool known =
      std::find(below->verbs.begin(), below->verbs.end(), verb) != below->verbs.end();
  if (!known) co_return Refusal(method_not_supported(call.what(), verb));
  if (sub == "scale") {
    if (verb == "get") co_return co_await get_scale(api, call);
    co_return co_await write_scale(api, call);
  }
  if (sub == "binding") co_return co_await bind_pod(api, call);
  if (sub == "eviction") co_return co_await evict_pod(api, call);
  if (sub == "token") co_return co_await request_token(api, call);
  if (verb == "get") co_return co_await get_object(api, call);
  if (verb == "update") co_return co_await update_object(api, call);
  if (verb == "patch") co_return co_await patch_object(api, call);
  co_return Refusal(method_not_supported(call.what(), verb));
}

Task<Answer<Reply>> dispatch(Api& api, Call& call) {
  const std::string& verb = call.info.verb;
  if (verb != "get" && verb != "list") {
    if (auto parsed = parse_write_options(call); !parsed) co_return Refusal(parsed.error());
  }
  if (!is_possible(call)) co_return Refusal(method_not_allowed());
  if (!call.info.subresource.empty()) co_return co_await dispatch_subresource(api, call);
  if (!call.type->allows(verb)) co_return Refusal(method_not_supported(call.what(), verb));
  if (is_of_node(*call.type)) co_return co_await read_from_node(api, call);
  if (verb == "get") co_return co_await get_object(api, call);
  if (verb == "list") co_return co_await list_objects(api, call);
  if (verb == "create") co_return co_await create_object(api, call);
  if (verb == "update") co_return co_await update_object(api, call);
  if (verb == "patch") co_return co_await patch_object(api, call);
  if (verb == "delete") co_return co_await delete_object(api, call);
  if (verb == "deletecollection") co_return co_await delete_objects(api, call);
  co_return Refusal(method_not_supported(call.what(), verb));
}

// The older way to bind: the Binding names its pod, the path does not.
void redirect_binding(Call& call) {
  const auto binding = decode_body(call);
  const std::string name(binding ? string_or(at(*binding, "metadata", "name")) : "");
  if (name.empty()) return;
  call.info.plural = "pods";
  call.info.subresource = "binding";
  call.info.name = name;
}

Answer<Reply> answer_path(const Api& api, const Call& call) {
  const std::string& path = call.target.path;
  if (is_health(path)) {
    return Reply{.body = "ok", .content_type = "text/plain; charset=utf-8"};
  }
  if (path == "/version" || path == "/version/") return Reply{.body = version_text()};
  if (auto found = answer_discovery(api, call)) return std::move(*found);
  if (auto found = answer_openapi(api, call)) return std::move(*found);
  return page_not_found();
}

Task<> respond(http::Exchange& exchange, const Call& call, Answer<Reply> answer) {
  if (!answer) {
    co_await respond_error(exchange, std::move(answer.error()));
    co_return;
  }
  http::Response response{.status = answer->code, .body = std::move(answer->body)};
  response.headers.set("content-type", answer->content_type);
  response.headers.set("cache-control", "no-cache, private");
  for (const std::string& warning : call.warnings) add_warning(response, warning);
  (void)co_await exchange.respond(std::move(response));
}

}  // namespace

Task<> handle(Api& api, http::Exchange& exchange) {
  Call call;
  call.request = &exchange.request();
  call.target = http::parse_target(call.request->target);
  call.info = parse_request_info(call.request->method, call.target);
  call.accepted = parse_accept(call.request->headers.get("accept"));
  if (!is_allowed(api, *call.request, call.target.path)) {
    co_await respond_error(exchange, unauthorized());
    co_return;
  }
  if (!call.info.is_resource) {
    co_await respond(exchange, call, answer_path(api, call));
    co_return;
  }
  if (call.info.group.empty() && call.info.plural == "bindings" && call.info.verb == "create") {
    redirect_binding(call);
  }
  call.type = api.registry.find(call.info.group, call.info.version, call.info.plural);
  if (!is_served(call)) {
    // Groups of definitions come and go with the definitions; the others exist for every path.
    const bool known = api.registry.is_builtin_group(call.info.group) ||
                       (call.type && !call.info.subresource.empty());
    co_await respond(exchange, call,
                     known ? Answer<Reply>(Refusal(path_not_found())) : page_not_found());
    co_return;
  }
  if (!call.type->deprecation.empty()) call.warnings.push_back(call.type->deprecation);
  if (!call.info.subresource.empty() && is_stream(call)) {
    co_await serve_stream(api, call, exchange);
    co_return;
  }
  if (!call.accepted.acceptable) {
    co_await respond_error(exchange, not_acceptable("application/json, application/yaml"));
    co_return;
  }
  if (call.info.verb == "watch") {
    co_await serve_watch(api, call, exchange);
    co_return;
  }
  auto answer = co_await dispatch(api, call);
  co_await respond(exchange, call, std::move(answer));
}

}  // namespace grapnel::local
