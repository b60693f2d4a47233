// logs, exec, attach, port-forward and proxies: their transport here, their far end in the node.

#include <algorithm>
#include <charconv>

#include "http/server.h"
#include "local/apiserver/exec_stream.h"
#include "local/apiserver/port_forward.h"
#include "local/apiserver/proxy.h"
#include "local/apiserver/reply.h"
#include "local/apiserver/subresources.h"

namespace grapnel::local {
namespace {

std::optional<int64_t> number_of(std::string_view text) {
  int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (text.empty() || error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

Task<> serve_logs(Api& api, const Call& call, http::Exchange& exchange) {
  PodLogRequest request{.ns = call.info.ns,
                        .pod = call.info.name,
                        .container = std::string(call.query("container")),
                        .follow = call.asks_for("follow"),
                        .previous = call.asks_for("previous"),
                        .timestamps = call.asks_for("timestamps"),
                        .tail_lines = number_of(call.query("tailLines")),
                        .since_seconds = number_of(call.query("sinceSeconds")),
                        .since_time = parse_time(call.query("sinceTime")),
                        .limit_bytes = number_of(call.query("limitBytes"))};
  auto served = co_await api.pods->logs(std::move(request), exchange);
  if (!served && served.error().reason != Reason::kTransport) {
    co_await respond_error(exchange, bad_request(served.error().message));
  }
}

bool is_kept(PodBackend& pods, const RequestInfo& info) {
  return std::ranges::any_of(pods.kept_logs(), [&](const Json& pod) {
    return string_or(at(pod, "metadata", "namespace")) == info.ns &&
           string_or(at(pod, "metadata", "name")) == info.name;
  });
}

}  // namespace

bool is_stream(const Call& call) {
  const std::string& sub = call.info.subresource;
  if (call.type->kind == "Pod" && call.type->group.empty()) {
    return sub == "log" || sub == "exec" || sub == "attach" || sub == "portforward" ||
           sub == "proxy";
  }
  return sub == "proxy" && call.type->group.empty() &&
         (call.type->kind == "Service" || call.type->kind == "Node");
}

Task<> serve_stream(Api& api, Call& call, http::Exchange& exchange) {
  const bool is_proxy = call.info.subresource == "proxy";
  if (call.type->kind == "Pod" && !is_proxy) {
    const std::string key = key_of(call.info.ns, call.info.name);
    // A pod that is gone may have left its log.
    const bool has_log = call.info.subresource == "log" && api.pods != nullptr;
    if (!api.store.get("pods", key) && !(has_log && is_kept(*api.pods, call.info))) {
      co_await respond_error(exchange, not_found({"", "pods"}, call.info.name));
      co_return;
    }
  }
  if (api.pods == nullptr) {
    co_await respond_error(exchange, not_implemented("no node of this cluster runs pods"));
    co_return;
  }
  if (call.info.subresource == "log") {
    co_await serve_logs(api, call, exchange);
    co_return;
  }
  if (call.info.subresource == "exec" || call.info.subresource == "attach") {
    co_await serve_exec(api, call, exchange);
    co_return;
  }
  if (call.info.subresource == "portforward") {
    co_await serve_port_forward(api, call, exchange);
    co_return;
  }
  if (is_proxy && call.type->kind != "Node") {
    co_await serve_proxy(api, call, exchange);
    co_return;
  }
  co_await respond_error(exchange, not_implemented("nodes of this cluster serve no HTTP"));
}

}  // namespace grapnel::local
