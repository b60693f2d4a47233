// exec: the one verb that needs a WebSocket.
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
  pod.subresource = "exec";
  const auto path = object_path(kinds::kPod, pod);
  if (!path) co_return fail(path.error());
  if (options.command.empty()) co_return fail(Reason::kUsage, "exec without a command");
  if (!options_.open_websocket) {
    co_return fail(Reason::kUsage, "this client was made without a way to open WebSockets");
  }
  const http::Request ask = request("GET", *path, exec_query(options));
  for (bool retried = false;; retried = true) {
    http::Request attempt = ask;
    if (auto done = co_await authorize(attempt); !done) co_return fail(std::move(done.error()));
    const std::string authorization(attempt.headers.get("Authorization"));
    auto socket = co_await options_.open_websocket(std::move(attempt), {"v5.channel.k8s.io"});
    if (socket) co_return socket;
    const int code = socket.error().code;
    if (code == 401 && !retried && credentials_ && credentials_->renew(authorization)) continue;
    if (code == 0) co_return socket;
    co_return fail(error_of_answer({.status = code, .body = std::move(socket.error().message)},
                                   fmt::format("GET {}", *path)));
  }
}

}  // namespace grapnel::kube
