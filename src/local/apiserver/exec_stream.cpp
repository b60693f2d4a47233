#include "local/apiserver/exec_stream.h"

#include <array>
#include <deque>

#include "base/strings.h"
#include "base/unless.h"
#include "kube/exec_channels.h"
#include "local/apiserver/reply.h"

namespace grapnel::local {
namespace {

constexpr std::string_view kNewest = "v5.channel.k8s.io";
constexpr std::array<std::string_view, 2> kProtocols{kNewest, "v4.channel.k8s.io"};

using Channel = kube::ExecChannel;

Task<Result<>> send(http::WebSocket& socket, Channel channel, std::string_view data) {
  std::string message(1, static_cast<char>(channel));
  message += data;
  co_return co_await socket.write(message);
}

// A separate Task reads from the client: cancelling a read of a WebSocket breaks the socket, and a
// command may end while its input is still open.
class Streams final : public PodStreams {
 public:
  Streams(Executor executor, http::WebSocket& socket)
      : socket_(socket), arrived_(executor), taken_(executor) {}

  // Until the client has gone.
  Task<> receive() {
    for (;;) {
      auto message = co_await socket_.read();
      if (!message || message->closed) break;
      while (inputs_.size() >= kAhead) co_await taken_.wait();
      if (auto input = decode(message->data)) inputs_.push_back(std::move(*input));
      arrived_.notify_all();
    }
    gone_ = true;
    arrived_.notify_all();
  }
  Task<> until_gone() {
    while (!gone_) co_await arrived_.wait();
  }

  Task<Result<Input>> read() override {
    while (inputs_.empty() && !gone_) co_await arrived_.wait();
    if (inputs_.empty()) co_return Input{.closed = true};
    Input next = std::move(inputs_.front());
    inputs_.pop_front();
    taken_.notify_all();
    co_return next;
  }
  Task<Result<>> write_stdout(std::string_view data) override {
    return send(socket_, Channel::kOutput, data);
  }
  Task<Result<>> write_stderr(std::string_view data) override {
    return send(socket_, Channel::kError, data);
  }

 private:
  // Nothing: of no meaning here.
  static std::optional<Input> decode(std::string_view message) {
    if (message.size() < 2) return std::nullopt;
    const auto data = message.substr(1);
    switch (static_cast<Channel>(message[0])) {
      case Channel::kInput:
        return Input{.data = std::string(data)};
      case Channel::kResize: {
        const auto size = parse_json(data);
        if (!size) return std::nullopt;
        return Input{.resize = Resize{.width = static_cast<int>(int_or(find(*size, "Width"))),
                                      .height = static_cast<int>(int_or(find(*size, "Height")))}};
      }
      case Channel::kClose:
        if (static_cast<Channel>(data[0]) != Channel::kInput) return std::nullopt;
        return Input{.closed = true};
      default:
        return std::nullopt;
    }
  }

  static constexpr size_t kAhead = 16;
  http::WebSocket& socket_;
  std::deque<Input> inputs_;
  Signal arrived_;
  Signal taken_;
  bool gone_ = false;
};

// The newest of those the client offers; empty: none that we speak.
std::string_view choose_protocol(const http::Request& request) {
  const auto offered = split(request.headers.get("Sec-WebSocket-Protocol"), ',');
  for (const auto ours : kProtocols) {
    for (const auto theirs : offered) {
      if (trim(theirs) == ours) return ours;
    }
  }
  return {};
}

PodExecRequest request_of(const Call& call) {
  PodExecRequest request{.ns = call.info.ns,
                         .pod = call.info.name,
                         .container = std::string(call.query("container")),
                         .stdin_open = call.asks_for("stdin"),
                         .stdout_open = call.asks_for("stdout"),
                         .stderr_open = call.asks_for("stderr"),
                         .tty = call.asks_for("tty")};
  for (const auto& [name, value] : call.target.query) {
    if (name == "command") request.command.push_back(value);
  }
  return request;
}

Task<> run(PodBackend& pods, PodExecRequest request, Streams& streams, Result<PodExit>& ended) {
  ended = co_await pods.exec(std::move(request), streams);
}

}  // namespace

Json exit_status(const Result<PodExit>& ended) {
  JsonObject status{{"metadata", JsonObject{}}, {"status", "Success"}};
  if (ended && ended->error.empty() && ended->code == 0) return status;
  status["status"] = "Failure";
  if (ended && ended->error.empty()) {
    status["reason"] = "NonZeroExitCode";
    status["message"] =
        fmt::format("command terminated with non-zero exit code: exit status {}", ended->code);
    status["details"] =
        JsonObject{{"causes", JsonArray{JsonObject{{"reason", "ExitCode"},
                                                   {"message", fmt::format("{}", ended->code)}}}}};
  } else {
    status["reason"] = "InternalError";
    status["message"] = ended ? ended->error : ended.error().message;
    status["code"] = 500;
  }
  return status;
}

Task<> serve_exec(Api& api, const Call& call, http::Exchange& exchange) {
  PodExecRequest request = request_of(call);
  const bool attach = call.info.subresource == "attach";
  if (!attach && request.command.empty()) {
    co_await respond_error(exchange,
                           bad_request("you must specify at least 1 command for the container"));
    co_return;
  }
  if (!request.stdin_open && !request.stdout_open && !request.stderr_open) {
    co_await respond_error(exchange,
                           bad_request("you must specify at least 1 of stdin, stdout, stderr"));
    co_return;
  }
  const auto protocol = choose_protocol(exchange.request());
  if (protocol.empty()) {
    co_await respond_error(
        exchange, bad_request(fmt::format("{} is served over WebSocket alone: upgrade to {} or {}",
                                          call.info.subresource, kProtocols[0], kProtocols[1])));
    co_return;
  }
  if (attach) request.command.clear();
  auto socket = co_await exchange.accept_websocket(std::string(protocol));
  if (!socket) co_return;
  Streams streams(api.executor, **socket);
  auto receiving = spawn(api.executor, streams.receive());
  Result<PodExit> ended = PodExit{};
  auto running = run(*api.pods, std::move(request), streams, ended);
  bool over = true;
  if (attach) {
    // It may be silent for long: only a closed connection shows that the client has gone.
    over = co_await unless(streams.until_gone(), std::move(running));
  } else {
    co_await std::move(running);
  }
  if (over) {
    (void)co_await send(**socket, Channel::kStatus, to_text(exit_status(ended)));
    co_await (*socket)->close();
  }
  receiving.cancel();
  co_await receiving.join();
}

}  // namespace grapnel::local
