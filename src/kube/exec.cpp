// exec and portforward: the verbs that need a WebSocket.
#include <fmt/format.h>

#include "kube/client.h"

namespace grapnel::kube {
namespace {

Query exec_query(const ExecOptions& options) {
  Query query;
  query.add("container", options.container)
      .add_flag("stdin", options.stdin_open)
      .add_flag("stdout", true)
      .add_flag("stderr", !options.tty)  // a terminal has one stream only
      .add_flag("tty", options.tty);
  return query.add_all("command", options.command);
}

}  // namespace

Task<Result<std::unique_ptr<http::WebSocket>>> Client::exec(Where pod, ExecOptions options) {
  if (options.command.empty()) co_return fail(Reason::kUsage, "exec without a command");
  pod.subresource = "exec";
  co_return co_await open_websocket(std::move(pod), exec_query(options), "v5.channel.k8s.io");
}

Task<Result<std::unique_ptr<http::WebSocket>>> Client::port_forward(Where pod) {
  pod.subresource = "portforward";
  co_return co_await open_websocket(std::move(pod), {}, "SPDY/3.1+portforward.k8s.io");
}

Task<Result<std::unique_ptr<http::WebSocket>>> Client::open_websocket(Where pod, Query query,
                                                                      std::string protocol) {
  const auto path = object_path(kinds::kPod, pod);
  if (!path) co_return fail(path.error());
  if (!options_.open_websocket) {
    co_return fail(Reason::kUsage, "this client was made without a way to open WebSockets");
  }
  http::Request ask = request("GET", *path, query);
  // It is passed on to the kubelet, which knows of no form that its streams would have.
  ask.headers.set("Accept", "*/*");
  for (bool retried = false;; retried = true) {
    http::Request attempt = ask;
    if (auto done = co_await authorize(attempt); !done) co_return fail(std::move(done.error()));
    const std::string authorization(attempt.headers.get("Authorization"));
    auto socket = co_await options_.open_websocket(std::move(attempt), {protocol});
    if (socket) co_return socket;
    const int code = socket.error().code;
    if (code == 401 && !retried && credentials_ && credentials_->renew(authorization)) continue;
    if (code == 0) co_return socket;
    co_return fail(error_of_answer({.status = code, .body = std::move(socket.error().message)},
                                   fmt::format("GET {}", *path)));
  }
}

}  // namespace grapnel::kube
