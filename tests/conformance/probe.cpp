#include "tests/conformance/probe.h"

#include <fmt/format.h>
#include <unistd.h>

#include <boost/asio/buffer.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/json/array.hpp>
#include <cstdio>
#include <cstdlib>

#include "base/interner.h"
#include "base/log.h"

namespace grapnel::probe {
namespace {

namespace asio = boost::asio;

Json to_json(const Error& error) {
  JsonObject object{{"reason", to_string(error.reason)},
                    {"message", error.message},
                    {"code", error.code},
                    {"ambiguous", error.ambiguous},
                    {"transient", error.is_transient()}};
  if (error.retry_after) {
    object["retry_after"] = std::chrono::duration<double>(*error.retry_after).count();
  }
  JsonArray causes;
  for (const Cause& cause : error.causes) {
    causes.push_back(
        JsonObject{{"field", cause.field}, {"message", cause.message}, {"reason", cause.reason}});
  }
  object["causes"] = std::move(causes);
  return object;
}

// A command under way, by its id.
using Running = std::map<int64_t, Spawned>;

void start(Session& session, const Commands& commands, Running& running, std::string_view line) {
  auto command = parse_json(line);
  if (!command) {
    Reply(0).error(command.error());
    return;
  }
  const int64_t id = int_or(find(*command, "id"));
  const Reply reply(id);
  const std::string name = text_of(*command, "do");
  std::erase_if(running, [](const auto& entry) { return entry.second.done(); });
  if (name == "cancel") {
    running.erase(int_or(find(*command, "target")));
    reply.ok({});
    return;
  }
  const auto handler = commands.find(name);
  if (handler == commands.end()) {
    reply.error({.reason = Reason::kUsage, .message = fmt::format("no command '{}'", name)});
    return;
  }
  running.emplace(id,
                  spawn(session.executor, handler->second(session, std::move(*command), reply)));
}

Task<> serve(Session& session, const Commands& commands) {
  asio::posix::stream_descriptor input(session.executor, ::dup(STDIN_FILENO));
  Running running;
  std::string pending;
  std::string buffer(65536, '\0');
  for (;;) {
    boost::system::error_code error;
    const size_t count = co_await input.async_read_some(
        asio::buffer(buffer), asio::redirect_error(asio::use_awaitable, error));
    if (error) break;
    pending.append(buffer, 0, count);
    size_t end = 0;
    while ((end = pending.find('\n')) != std::string::npos) {
      start(session, commands, running, std::string_view(pending).substr(0, end));
      pending.erase(0, end + 1);
    }
  }
  for (auto& [id, task] : running) task.cancel();
  for (auto& [id, task] : running) co_await task.join();
  session.connection = {};  // else idle connections keep the loop going for half a minute
}

int run(std::string kubeconfig, Duration timeout) {
  log_setup(LogFormat::kText, LogLevel::kDebug);
  Commands commands;
  add_client_commands(commands);
  add_runtime_commands(commands);
  asio::io_context loop;
  auto connection =
      kube::connect(loop.get_executor(), kube::AccessOptions{.kubeconfig = std::move(kubeconfig)},
                    kube::ClientOptions{.timeout = timeout});
  if (!connection) {
    Reply(0).error(connection.error());
    return 1;
  }
  Session session{loop.get_executor(), std::move(*connection)};
  Reply(0).ok(JsonObject{{"namespace", session.connection.ns}});
  const auto main = spawn(session.executor, serve(session, commands));
  loop.run();
  return 0;
}

}  // namespace

void Reply::event(Json value) const {
  write("event", std::move(value));
}
void Reply::ok(Json value) const {
  write("ok", std::move(value));
}
void Reply::error(const Error& error) const {
  write("error", to_json(error));
}
void Reply::result(Result<Json> result) const {
  if (result) {
    ok(std::move(*result));
  } else {
    error(result.error());
  }
}

void Reply::write(std::string_view key, Json value) const {
  const std::string line = to_text(JsonObject{{"id", id_}, {key, std::move(value)}}) + "\n";
  std::fwrite(line.data(), 1, line.size(), stdout);
  std::fflush(stdout);
}

kube::Kind kind_of(const Json& command) {
  const Json* parts = find(command, "kind");
  if (parts == nullptr || !parts->is_array() || parts->get_array().size() != 5) return {};
  const JsonArray& list = parts->get_array();
  const auto part = [&list](size_t i) { return keep_text(string_or(&list[i])); };
  return {part(0), part(1), part(2), part(3), bool_or(&list[4])};
}

std::string text_of(const Json& command, std::string_view key) {
  return std::string(string_or(find(command, key)));
}

}  // namespace grapnel::probe

// conformance_probe [KUBECONFIG [SECONDS]]: the latter is how long the client waits for answers.
int main(int argc, char** argv) {
  const int seconds = argc > 2 ? std::atoi(argv[2]) : 30;
  return grapnel::probe::run(argc > 1 ? argv[1] : "", grapnel::seconds(seconds));
}
