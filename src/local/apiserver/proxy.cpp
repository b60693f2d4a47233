#include "local/apiserver/proxy.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <span>

#include "base/strings.h"
#include "base/unless.h"
#include "document/elements.h"
#include "http/response_reader.h"
#include "local/apiserver/reply.h"

namespace grapnel::local {
namespace {

// These headers are about one connection; a proxy has two.
constexpr std::array<std::string_view, 9> kHopByHop = {"Connection",
                                                       "Keep-Alive",
                                                       "Proxy-Authenticate",
                                                       "Proxy-Authorization",
                                                       "Proxy-Connection",
                                                       "TE",
                                                       "Trailer",
                                                       "Transfer-Encoding",
                                                       "Upgrade"};

bool is_one_of(std::string_view name, std::span<const std::string_view> names) {
  const http::Headers one{{std::string(name), ""}};
  return std::ranges::any_of(names, [&](std::string_view other) { return one.has(other); });
}

ApiError unavailable(std::string message) {
  return {.code = 503, .reason = "ServiceUnavailable", .message = std::move(message)};
}

uint16_t port_of(std::string_view text) {
  uint16_t port = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), port);
  return error == std::errc() && end == text.data() + text.size() ? port : 0;
}

uint16_t port_of(const Json* number) {
  return static_cast<uint16_t>(int_or(number));
}

struct PodPort {
  std::string pod;
  uint16_t port = 0;
};

Answer<Json> stored_object(Api& api, const Call& call, std::string_view collection,
                           const std::string& name) {
  const ObjectPtr stored = api.store.get(collection, key_of(call.info.ns, name));
  auto object = stored ? parse_json(stored->json) : Result<Json>(Json());
  if (!object || !object->is_object()) return Refusal(not_found(call.what(), name));
  return std::move(*object);
}

// Without a port: the first that a container names.
Answer<PodPort> find_pod(Api& api, const Call& call, const ProxyTarget& target) {
  const auto pod = stored_object(api, call, "pods", target.name);
  if (!pod) return Refusal(pod.error());
  PodPort found{.pod = target.name,
                .port = target.port.empty() ? uint16_t{80} : port_of(target.port)};
  if (found.port == 0) {
    return Refusal(bad_request(fmt::format("invalid port {}: a number is needed", target.port)));
  }
  if (!target.port.empty()) return found;
  for (const Json& container : elements(at(*pod, "spec", "containers"))) {
    for (const Json& port : elements(find(container, "ports"))) {
      found.port = port_of(find(port, "containerPort"));
      return found;
    }
  }
  return found;
}

// The name of the service's port that was asked for by name or number; ports may have none. A name
// that no port has is taken as it is: then there is no endpoint for it.
std::optional<std::string> port_name(const Json& service, const std::string& asked) {
  const JsonArray& ports = elements(at(service, "spec", "ports"));
  for (const Json& port : ports) {
    const std::string name(string_or(find(port, "name")));
    const bool is_it = asked.empty()
                           ? ports.size() == 1
                           : name == asked || port_of(find(port, "port")) == port_of(asked);
    if (is_it) return name;
  }
  if (port_of(asked) != 0) return std::nullopt;
  return asked;
}

Answer<PodPort> find_endpoint(Api& api, const Call& call, const ProxyTarget& target) {
  const auto service = stored_object(api, call, "services", target.name);
  if (!service) return Refusal(service.error());
  const auto name = port_name(*service, target.port);
  if (!name) {
    return Refusal(unavailable(fmt::format("no service port {} found for service {}", target.port,
                                           in_quotes(target.name))));
  }
  const auto endpoints = stored_object(api, call, "endpoints", target.name);
  std::vector<PodPort> found;
  for (const Json& subset : elements(endpoints ? find(*endpoints, "subsets") : nullptr)) {
    for (const Json& port : elements(find(subset, "ports"))) {
      if (string_or(find(port, "name")) != *name) continue;
      for (const Json& address : elements(find(subset, "addresses"))) {
        const std::string_view pod = string_or(at(address, "targetRef", "name"));
        if (!pod.empty()) found.push_back({std::string(pod), port_of(find(port, "port"))});
      }
    }
  }
  if (found.empty()) {
    return Refusal(
        unavailable(fmt::format("no endpoints available for service {}", in_quotes(target.name))));
  }
  return found[api.random.below(found.size())];
}

// The way to a pod's own root, as the client knows it; and what it asked for there.
struct Path {
  std::string base;
  std::string rest;  // with the query
};
Path split_path(const http::Request& request) {
  constexpr int kParts = 7;  // /api/v1/namespaces/NS/pods/NAME/proxy
  const std::string_view target = request.target;
  size_t end = 0;
  for (int i = 0; i < kParts; ++i)
    end = std::min(target.find_first_of("/?", end + 1), target.size());
  return {std::string(target.substr(0, end)), std::string(target.substr(end))};
}

http::Response head_for_client(http::Response head, const Path& path) {
  http::Response out{.status = head.status};
  for (const auto& [name, value] : head.headers) {
    if (is_one_of(name, kHopByHop)) continue;
    const bool is_place = is_one_of(name, std::array<std::string_view, 1>{"Location"});
    out.headers.add(name, is_place && value.starts_with('/') ? path.base + value : value);
  }
  return out;
}

Task<> carry(http::ByteStream& from, PodConnection& to) {
  for (;;) {
    const auto piece = co_await from.read();
    if (!piece || piece->empty()) break;
    if (auto written = co_await to.write(*piece); !written) break;
  }
  to.finish_writing();
}

// Both ways, until the pod has sent everything.
Task<> carry_upgraded(Api& api, http::Response head, std::string rest, PodConnection& pod,
                      http::Exchange& exchange) {
  auto client = co_await exchange.upgrade(std::move(head.headers));
  if (!client) co_return;
  auto sending = spawn(api.executor, carry(**client, pod));
  auto written = co_await (*client)->write(rest);
  while (written) {
    const auto piece = co_await pod.read();
    if (!piece || piece->empty()) break;
    written = co_await (*client)->write(*piece);
  }
  co_await (*client)->close();
  sending.cancel();
  co_await sending.join();
}

Task<> relay(Api& api, const Call& call, PodConnection& pod, http::Exchange& exchange) {
  const Path path = split_path(*call.request);
  http::ResponseReader reader(pod, call.request->method);
  Result<http::Response> head = co_await pod.write(request_for_pod(*call.request, path.rest))
                                    ? co_await reader.read_head()
                                    : fail(Reason::kTransport, "the pod closed the connection");
  if (!head) {
    co_await respond_error(exchange,
                           unavailable("error trying to reach service: " + head.error().message));
    co_return;
  }
  if (head->status == 101) {
    co_await carry_upgraded(api, std::move(*head), reader.take_rest(), pod, exchange);
    co_return;
  }
  if (!co_await exchange.begin(head_for_client(std::move(*head), path))) co_return;
  for (;;) {
    const auto piece = co_await reader.read_body();
    if (!piece) co_return;  // the client sees it cut short, as we did
    if (piece->empty()) break;
    if (!co_await exchange.write(*piece)) co_return;
  }
  (void)co_await exchange.finish();
}

}  // namespace

ProxyTarget parse_proxy_target(std::string_view text) {
  const auto parts = split(text, ':');
  const auto part = [&](size_t i) { return std::string(parts[i]); };
  if (parts.size() == 1) return {.name = part(0)};
  if (parts.size() == 2) return {.name = part(0), .port = part(1)};
  if (parts.size() == 3) return {.scheme = part(0), .name = part(1), .port = part(2)};
  return {.name = std::string(text)};
}

std::string request_for_pod(const http::Request& request, std::string_view path) {
  std::string out =
      fmt::format("{} {}{} HTTP/1.1\r\n", request.method, path.starts_with('/') ? "" : "/", path);
  constexpr std::array<std::string_view, 3> kOurs = {"Authorization", "Content-Length", "Expect"};
  for (const auto& [name, value] : request.headers) {
    if (is_one_of(name, kHopByHop) || is_one_of(name, kOurs)) continue;
    out += fmt::format("{}: {}\r\n", name, value);
  }
  if (!request.body.empty() || request.method == "POST" || request.method == "PUT") {
    out += fmt::format("Content-Length: {}\r\n", request.body.size());
  }
  if (request.headers.has("Upgrade")) {
    out += fmt::format("Connection: Upgrade\r\nUpgrade: {}\r\n", request.headers.get("Upgrade"));
  } else {
    out += "Connection: close\r\n";
  }
  return out + "\r\n" + request.body;
}

Task<> serve_proxy(Api& api, const Call& call, http::Exchange& exchange) {
  const ProxyTarget target = parse_proxy_target(call.info.name);
  if (!target.scheme.empty() && target.scheme != "http") {
    co_await respond_error(exchange, not_implemented("the proxy of this cluster speaks plain HTTP "
                                                     "to pods; kubectl port-forward carries TLS"));
    co_return;
  }
  const auto found =
      call.type->kind == "Pod" ? find_pod(api, call, target) : find_endpoint(api, call, target);
  if (!found) {
    co_await respond_error(exchange, found.error());
    co_return;
  }
  const Path path = split_path(*call.request);
  if (path.rest.empty() && (call.request->method == "GET" || call.request->method == "HEAD")) {
    // Links on the page are relative to it.
    (void)co_await exchange.respond(
        {.status = 301, .headers = {{"Location", path.base + "/"}}, .body = ""});
    co_return;
  }
  const auto pod = co_await api.pods->connect(call.info.ns, found->pod, found->port);
  if (!pod) {
    co_await respond_error(exchange,
                           unavailable("error trying to reach service: " + pod.error().message));
    co_return;
  }
  if (call.request->headers.has("Upgrade")) {
    co_await relay(api, call, **pod, exchange);
  } else {
    (void)co_await unless(exchange.closed(), relay(api, call, **pod, exchange));
  }
}

}  // namespace grapnel::local
