#include "local/kubelet/handlers.h"

#include <charconv>
#include <csignal>

#include "base/strings.h"
#include "local/kubelet/fd_stream.h"

namespace grapnel::local::kubelet {
namespace {

constexpr size_t kLongestOutput = 10UL << 10;

// The result of one attempt; none: it was cut off.
using Outcome = std::shared_ptr<std::optional<Result<>>>;

Task<> collect(std::shared_ptr<FdStream> from, std::shared_ptr<std::string> into) {
  for (;;) {
    auto data = co_await from->read();
    if (!data || data->empty()) co_return;
    if (into->size() < kLongestOutput) into->append(*data, 0, kLongestOutput - into->size());
  }
}

// When nobody waits for the program any more, it is killed.
class KilledUnlessEnded {
 public:
  KilledUnlessEnded(PodRunner* runner, std::string pod, uint64_t id)
      : runner_(runner), pod_(std::move(pod)), id_(id) {}
  KilledUnlessEnded(const KilledUnlessEnded&) = delete;
  KilledUnlessEnded& operator=(const KilledUnlessEnded&) = delete;
  ~KilledUnlessEnded() {
    if (!has_ended) runner_->signal_exec(pod_, id_, SIGKILL);
  }
  bool has_ended = false;

 private:
  PodRunner* runner_;
  std::string pod_;
  uint64_t id_;
};

Task<Result<>> run_program_in(HandlerTarget target, Json exec) {
  ExecSpec spec = target.like;
  for (const Json& part : elements(find(exec, "command"))) {
    spec.arguments.emplace_back(string_or(&part));
  }
  auto process = co_await target.runner->exec(target.pod, std::move(spec));
  if (!process) co_return fail(process.error());
  KilledUnlessEnded guard(target.runner, target.pod, process->id);
  const auto output = std::make_shared<std::string>();
  std::vector<Spawned> reading;
  for (Fd* fd : {&process->output, &process->error}) {
    if (!*fd) continue;
    auto stream = std::make_shared<FdStream>(target.executor, std::move(*fd));
    reading.push_back(spawn(target.executor, collect(std::move(stream), output)));
  }
  auto ended = co_await target.runner->wait_for_exec(target.pod, process->id);
  guard.has_ended = true;
  if (!ended) co_return fail(ended.error());
  if (ended->exit_code == 0) co_return Result<>();
  co_return fail(Reason::kUnknown, "command exited with {}: {}", ended->exit_code, trim(*output));
}

Task<Result<>> ask(HandlerTarget target, Json get) {
  const uint16_t port = port_of(target.container, find(get, "port"));
  auto fd = co_await target.runner->connect(target.address, port);
  const std::string url =
      fmt::format("http://{}:{}{}", target.address, port, string_or(find(get, "path"), "/"));
  if (!fd) co_return fail_in(fmt::format("Get \"{}\"", url), fd.error());
  // A probe checks no certificate: all it can learn is that somebody answers.
  if (string_or(find(get, "scheme")) == "HTTPS") co_return Result<>();
  FdStream stream(target.executor, std::move(*fd));
  const std::string request = http_request(get, target.address, port);
  if (auto sent = co_await stream.write(request); !sent) co_return sent;
  std::string answer;
  while (answer.find('\n') == std::string::npos && answer.size() < kLongestOutput) {
    auto piece = co_await stream.read();
    if (!piece) co_return fail_in(fmt::format("Get \"{}\"", url), piece.error());
    if (piece->empty()) break;
    answer += *piece;
  }
  const int status = http_status(answer);
  if (status >= 200 && status < 400) co_return Result<>();
  if (status == 0) co_return fail(Reason::kTransport, "Get \"{}\": malformed HTTP response", url);
  co_return fail(Reason::kUnknown, "HTTP probe failed with statuscode: {}", status);
}

Task<Result<>> reach(HandlerTarget target, Json socket) {
  const uint16_t port = port_of(target.container, find(socket, "port"));
  auto fd = co_await target.runner->connect(target.address, port);
  if (!fd) co_return fail(fd.error());
  co_return Result<>();
}

Task<Result<>> attempt(HandlerTarget target, Json handler) {
  if (const Json* exec = find(handler, "exec")) {
    return run_program_in(std::move(target), *exec);
  }
  if (const Json* get = find(handler, "httpGet")) return ask(std::move(target), *get);
  if (const Json* socket = find(handler, "tcpSocket")) return reach(std::move(target), *socket);
  if (const Json* grpc = find(handler, "grpc")) return reach(std::move(target), *grpc);
  return [](Clock* clock, int64_t length) -> Task<Result<>> {
    co_await clock->sleep(seconds(length));
    co_return Result<>();
  }(target.clock, int_or(at(handler, "sleep", "seconds"), 0));
}

Task<> store(Task<Result<>> task, Outcome into) {
  *into = co_await std::move(task);
}

}  // namespace

Task<Result<>> perform(HandlerTarget target, Json handler, Duration timeout) {
  const auto outcome = std::make_shared<std::optional<Result<>>>();
  Clock* clock = target.clock;
  co_await with_deadline(*clock, clock->instant() + timeout,
                         store(attempt(std::move(target), std::move(handler)), outcome));
  if (*outcome) co_return **outcome;
  co_return fail(Reason::kTimeout, "no answer within {}s", duration_cast<seconds>(timeout).count());
}

uint16_t port_of(const Json& container, const Json* port) {
  const auto name = string_or(port);
  if (name.empty()) return static_cast<uint16_t>(int_or(port));
  uint16_t number = 0;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), number);
  if (error == std::errc() && end == name.data() + name.size()) return number;
  for (const Json& known : elements(find(container, "ports"))) {
    if (string_or(find(known, "name")) == name) {
      return static_cast<uint16_t>(int_or(find(known, "containerPort")));
    }
  }
  return 0;
}

std::string http_request(const Json& get, std::string_view address, uint16_t port) {
  std::string path(string_or(find(get, "path"), "/"));
  if (!path.starts_with('/')) path.insert(0, "/");
  std::string host = fmt::format("{}:{}", address, port);
  std::string agent = "kube-probe/1.34";
  std::string more;
  for (const Json& header : elements(find(get, "httpHeaders"))) {
    const auto name = string_or(find(header, "name"));
    const std::string value(string_or(find(header, "value")));
    if (to_lower(name) == "host") {
      host = value;
    } else if (to_lower(name) == "user-agent") {
      agent = value;
    } else {
      more += fmt::format("{}: {}\r\n", name, value);
    }
  }
  return fmt::format(
      "GET {} HTTP/1.1\r\nHost: {}\r\nUser-Agent: {}\r\nAccept: */*\r\n{}Connection: "
      "close\r\n\r\n",
      path, host, agent, more);
}

int http_status(std::string_view answer) {
  if (!answer.starts_with("HTTP/")) return 0;
  const size_t space = answer.find(' ');
  if (space == std::string_view::npos) return 0;
  const auto text = answer.substr(space + 1, 3);
  int status = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), status);
  return error == std::errc() && end == text.data() + text.size() ? status : 0;
}

}  // namespace grapnel::local::kubelet
