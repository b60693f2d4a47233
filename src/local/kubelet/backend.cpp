#include "local/kubelet/backend.h"

#include <sys/ioctl.h>

#include "base/strings.h"
#include "base/unless.h"
#include "local/kubelet/container_spec.h"
#include "local/kubelet/fd_stream.h"
#include "local/kubelet/log_reader.h"
#include "local/kubelet/pod_worker.h"

namespace grapnel::local::kubelet {
namespace {

// What a container prints in that time is sent together.
constexpr Duration kLogPause = milliseconds(10);

using Write = Task<Result<>> (PodStreams::*)(std::string_view);

Task<> pass_output(std::shared_ptr<FdStream> from, PodStreams& to, Write write) {
  for (;;) {
    auto data = co_await from->read();
    if (!data || data->empty()) co_return;
    if (auto written = co_await (to.*write)(*data); !written) co_return;
  }
}

Task<> pass_input(PodStreams& from, std::shared_ptr<FdStream> to, bool is_terminal) {
  for (;;) {
    auto input = co_await from.read();
    if (!input) co_return;
    if (input->resize && is_terminal) {
      const winsize size{.ws_row = static_cast<unsigned short>(input->resize->height),
                         .ws_col = static_cast<unsigned short>(input->resize->width)};
      ioctl(to->fd(), TIOCSWINSZ, &size);
    }
    if (!input->data.empty()) {
      if (auto written = co_await to->write(input->data); !written) co_return;
    }
    if (input->closed) {
      if (!is_terminal) co_await to->close();
      co_return;
    }
  }
}

// Whose input ends with the first who gives it some.
struct InputEnd {
  PodRunner* runner = nullptr;
  std::string pod;
  std::string container;
};

// Does not return: a client that sends no more input still listens.
Task<> pass_all_input(Executor executor, PodStreams& from, std::shared_ptr<FdStream> to,
                      bool is_terminal, InputEnd at_end) {
  co_await pass_input(from, std::move(to), is_terminal);
  if (at_end.runner != nullptr) at_end.runner->close_input(at_end.pod, at_end.container);
  Signal never(executor);
  for (;;) co_await never.wait();
}

Task<> note_end(http::Exchange& exchange, std::shared_ptr<bool> ended,
                std::shared_ptr<LogWatch::Follower> follower) {
  co_await exchange.closed();
  *ended = true;
  follower->wake();
}

}  // namespace

Result<Backend::Target> Backend::find(const std::string& ns, const std::string& pod,
                                      const std::string& container) const {
  if (runner_ == nullptr) return fail(Reason::kServiceUnavailable, "the node is not running");
  const auto worker = options_.pods->find_pod(ns, pod);
  if (worker == nullptr) {
    return fail(Reason::kBadRequest, "pod {} does not have a host assigned", pod);
  }
  const auto all = all_containers(worker->pod());
  std::string wanted = container;
  if (wanted.empty()) {
    wanted = string_or(at(*worker->pod().object, "metadata", "annotations",
                          "kubectl.kubernetes.io/default-container"));
  }
  if (wanted.empty()) {
    const auto mains = main_containers(worker->pod());
    if (mains.size() == 1)
      return Target{.worker = worker, .container = std::string(mains[0].name())};
    std::vector<std::string> names;
    for (const Container& c : mains) names.emplace_back(c.name());
    return fail(Reason::kBadRequest,
                "a container name must be specified for pod {}, choose one of: [{}]", pod,
                join(names, " "));
  }
  for (const Container& c : all) {
    if (c.name() == wanted) return Target{.worker = worker, .container = wanted};
  }
  return fail(Reason::kBadRequest, "container {} is not valid for pod {}", wanted, pod);
}

Result<std::string> Backend::log_file(const PodLogRequest& request) const {
  if (options_.pods->find_pod(request.ns, request.pod) == nullptr) {
    auto kept =
        options_.kept->log_file(request.ns, request.pod, request.container, request.previous);
    if (kept) return kept;
  }
  auto target = find(request.ns, request.pod, request.container);
  if (!target) return fail(target.error());
  const ContainerFacts* facts = target->worker->facts(target->container);
  if (facts == nullptr || !facts->now) {
    const bool has_trouble = facts != nullptr && facts->trouble;
    return fail(Reason::kBadRequest, "container \"{}\" in pod \"{}\" is waiting to start: {}",
                target->container, request.pod,
                has_trouble ? facts->trouble->message : "ContainerCreating");
  }
  uint64_t attempt = facts->now->attempt;
  if (request.previous) {
    if (attempt == 0) {
      return fail(Reason::kBadRequest,
                  "previous terminated container \"{}\" in pod \"{}\" not found", target->container,
                  request.pod);
    }
    --attempt;
  }
  return log_path(log_directory(options_.state_directory, target->worker->pod(), target->container),
                  attempt);
}

bool Backend::is_still_written(const PodLogRequest& request, const std::string& path) const {
  auto target = find(request.ns, request.pod, request.container);
  if (!target || request.previous) return false;
  const ContainerFacts* facts = target->worker->facts(target->container);
  if (facts == nullptr || !facts->is_running()) return false;
  // A restart writes to another file.
  return log_path(log_directory(options_.state_directory, target->worker->pod(), target->container),
                  facts->now->attempt) == path;
}

Task<Result<>> Backend::logs(PodLogRequest request, http::Exchange& exchange) {
  auto path = log_file(request);
  if (!path) co_return fail(path.error());
  LogFilter filter{.timestamps = request.timestamps,
                   .tail_lines = request.tail_lines,
                   .since = request.since_time,
                   .limit_bytes = request.limit_bytes};
  if (request.since_seconds) filter.since = options_.clock->now() - seconds(*request.since_seconds);
  // Before the first look: from then on nothing is missed.
  const auto follower = request.follow ? watch_.follow(*path) : nullptr;
  LogFiles files(*path, filter);
  LogFormatter formatter(filter);
  auto begun =
      co_await exchange.begin({.status = 200, .headers = {{"Content-Type", "text/plain"}}});
  if (!begun) co_return begun;

  const auto has_gone = std::make_shared<bool>(false);
  Spawned watching;
  if (request.follow) watching = spawn(options_.executor, note_end(exchange, has_gone, follower));
  Result<> done;
  Instant rested{};  // until when what comes is collected
  // Asked before the file is read: what was written before the end is then read after it.
  bool goes_on = request.follow && is_still_written(request, *path);
  while (done && !formatter.is_full() && !*has_gone) {
    const std::string bytes = files.read();
    if (bytes.empty()) {
      if (!goes_on) break;
      co_await options_.clock->sleep_until(rested);
      co_await follower->wait();
      goes_on = is_still_written(request, *path);
      continue;
    }
    const std::string text = formatter.add(bytes);
    if (!text.empty()) done = co_await exchange.write(text);
    rested = options_.clock->instant() + kLogPause;
  }
  if (request.follow) {
    watching.cancel();
    co_await watching.join();
  }
  if (done) done = co_await exchange.finish();
  co_return done;
}

Task<Result<PodExit>> Backend::exec(PodExecRequest request, PodStreams& streams) {
  if (request.command.empty()) co_return co_await attach(std::move(request), streams);
  auto target = find(request.ns, request.pod, request.container);
  if (!target) co_return fail(target.error());
  const std::string uid = target->worker->pod().uid();
  const ContainerFacts* facts = target->worker->facts(target->container);
  if (facts == nullptr || !facts->is_running()) {
    co_return fail(Reason::kBadRequest, "container \"{}\" of pod \"{}\" is not running",
                   target->container, request.pod);
  }
  const std::string container = target->container;
  auto spec = co_await target->worker->beside(container);
  if (!spec) co_return fail(spec.error());
  spec->arguments = request.command;
  spec->terminal = request.tty;
  spec->with_stdin = request.stdin_open;
  if (request.tty) spec->environment.emplace_back("TERM=xterm");
  auto process = co_await runner_->exec(uid, std::move(*spec));
  if (!process) co_return PodExit{.code = 126, .error = process.error().message};

  const auto stream = [&](Fd& fd) {
    return fd ? std::make_shared<FdStream>(options_.executor, std::move(fd)) : nullptr;
  };
  const auto input = stream(process->input);
  const auto output = request.tty ? input : stream(process->output);
  const auto error = stream(process->error);
  Spawned reading;
  if (input) reading = spawn(options_.executor, pass_input(streams, input, request.tty));
  std::vector<Task<>> outputs;
  if (output) outputs.push_back(pass_output(output, streams, &PodStreams::write_stdout));
  if (error) outputs.push_back(pass_output(error, streams, &PodStreams::write_stderr));
  Spawned writing = spawn(options_.executor, all(std::move(outputs)));

  auto ended = co_await runner_->wait_for_exec(uid, process->id);
  // Processes that it left behind may hold the pipes open. Its own output arrives within a moment.
  co_await with_deadline(*options_.clock, options_.clock->instant() + seconds(1), writing.join());
  writing.cancel();
  co_await writing.join();
  if (input) {
    reading.cancel();
    co_await reading.join();
  }
  if (!ended) co_return fail(ended.error());
  co_return PodExit{.code = ended->exit_code, .error = ""};
}

// Sends what the container prints from now on, until it ends. What arrives is its input, if it has
// one.
Task<Result<PodExit>> Backend::attach(PodExecRequest request, PodStreams& streams) {
  auto target = find(request.ns, request.pod, request.container);
  if (!target) co_return fail(target.error());
  const std::string uid = target->worker->pod().uid();
  const std::string container = target->container;
  const Json* spec = target->worker->spec_of(container);
  const bool once = spec != nullptr && bool_or(grapnel::find(*spec, "stdinOnce"));
  const bool is_terminal = spec != nullptr && bool_or(grapnel::find(*spec, "tty"));
  auto attached = co_await runner_->attach(uid, container);
  if (!attached) co_return fail(Reason::kBadRequest, "{}", attached.error().message);

  const auto stream = [&](Fd& fd) {
    return std::make_shared<FdStream>(options_.executor, std::move(fd));
  };
  std::vector<Task<>> outputs;
  outputs.push_back(pass_output(stream(attached->output), streams, &PodStreams::write_stdout));
  outputs.push_back(pass_output(stream(attached->error), streams, &PodStreams::write_stderr));
  if (attached->input && request.stdin_open) {
    InputEnd at_end;
    if (once && !is_terminal) at_end = {.runner = runner_, .pod = uid, .container = container};
    co_await unless(all(std::move(outputs)),
                    pass_all_input(options_.executor, streams, stream(attached->input), is_terminal,
                                   std::move(at_end)));
  } else {
    co_await all(std::move(outputs));
  }
  auto ended = co_await runner_->wait_for_end(uid, container);
  co_return PodExit{.code = ended ? ended->exit_code : 0, .error = ""};
}

Task<Result<std::unique_ptr<PodConnection>>> Backend::connect(std::string ns, std::string pod,
                                                              uint16_t port) {
  if (runner_ == nullptr) co_return fail(Reason::kServiceUnavailable, "the node is not running");
  const auto worker = options_.pods->find_pod(ns, pod);
  if (worker == nullptr || worker->address().empty()) {
    co_return fail(Reason::kBadRequest, "pod {} is not running", pod);
  }
  auto fd = co_await runner_->connect(worker->address(), port);
  if (!fd) co_return fail(fd.error());
  co_return std::make_unique<FdStream>(options_.executor, std::move(*fd));
}

Task<std::vector<PodUsage>> Backend::usage(std::vector<PodName> pods) {
  struct Found {
    size_t pod = 0;
    std::string container;
    int pid = 0;
  };
  std::vector<Found> found;
  std::vector<int> pids;
  for (size_t i = 0; i < pods.size(); ++i) {
    const auto worker = options_.pods->find_pod(pods[i].ns, pods[i].pod);
    if (worker == nullptr) continue;
    for (const Container& container : all_containers(worker->pod())) {
      const ContainerFacts* facts = worker->facts(container.name());
      if (facts == nullptr || !facts->is_running() || facts->now->host_pid == 0) continue;
      found.push_back({i, std::string(container.name()), facts->now->host_pid});
      pids.push_back(facts->now->host_pid);
    }
  }
  const auto used = co_await sampler_.measure(std::move(pids));
  std::vector<PodUsage> out;
  std::optional<size_t> last;
  for (const auto& [pod, container, pid] : found) {
    const auto usage = used.find(pid);
    if (usage == used.end()) continue;
    if (last != pod) {
      out.push_back({.ns = pods[pod].ns, .pod = pods[pod].pod, .at = options_.clock->now()});
    }
    last = pod;
    out.back().containers.push_back({.name = container,
                                     .nanocores = usage->second.nanocores,
                                     .bytes = usage->second.bytes,
                                     .window = usage->second.window});
  }
  co_return out;
}

}  // namespace grapnel::local::kubelet
