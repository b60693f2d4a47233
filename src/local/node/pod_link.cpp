#include "local/node/pod_link.h"

#include <dirent.h>

#include <charconv>

#include "base/files.h"
#include "local/node/container_encoding.h"
#include "local/node/sandbox.h"

namespace grapnel::local {
namespace {

using shim::Field;
using shim::Message;

Failure gone() {
  return fail(Reason::kTransport, "the pod's shim has ended");
}

std::vector<std::string> names_in(const std::string& directory) {
  std::vector<std::string> names;
  if (DIR* opened = opendir(directory.c_str())) {
    while (const dirent* entry = readdir(opened)) {
      if (entry->d_name[0] != '.') names.emplace_back(entry->d_name);
    }
    closedir(opened);
  }
  return names;
}

std::string_view without_kind(std::string_view message) {
  return message.substr(std::min(message.size(), sizeof(uint16_t)));
}

}  // namespace

PodLink::PodLink(Executor executor, PodStatus status_in, std::string directory_in)
    : status(std::move(status_in)),
      directory(std::move(directory_in)),
      executor_(std::move(executor)),
      changed_(executor_) {}

PodLink::~PodLink() = default;

Task<Result<>> PodLink::connect() {
  auto opened = Connection::open(executor_, directory);
  if (!opened) co_return fail(opened.error());
  connection_ = std::move(*opened);
  reader_ = spawn(executor_, read(weak_from_this(), connection_));
  std::string hello;
  shim::Writer(hello).message(Message::kHello);
  if (auto sent = send(hello); !sent) co_return sent;
  while (connection_ && !said_hello_) co_await changed_.wait();
  if (!connection_) co_return gone();
  co_return Result<>();
}

Result<> PodLink::send(const std::string& message, const std::vector<int>& fds) {
  if (!connection_) return gone();
  return connection_->send(message, fds);
}

// The pod may be removed during any wait, so check that it still exists before touching it.
Task<> PodLink::read(std::weak_ptr<PodLink> link, std::shared_ptr<Connection> connection) {
  while (true) {
    auto packet = co_await connection->receive();
    const auto self = link.lock();
    if (!self) co_return;
    if (!packet) {
      self->lose_connection();
      co_return;
    }
    self->take(std::move(*packet));
  }
}

void PodLink::lose_connection() {
  connection_.reset();
  changed_.notify_all();
  if (is_ending) return;
  status.is_lost = true;
  read_records();
  if (on_lost) on_lost();
}

void PodLink::take(Connection::Packet packet) {
  shim::Reader reader(packet.bytes);
  const Message message = reader.message();
  switch (message) {
    case Message::kContainer:
    case Message::kStarted:
    case Message::kStartFailed:
    case Message::kExited:
      take_status(decode_status(without_kind(packet.bytes)));
      break;
    case Message::kHelloEnd:
      said_hello_ = true;
      break;
    case Message::kExecStarted:
    case Message::kExecFailed:
    case Message::kExecExited:
      take_exec(message, reader, std::move(packet.fds));
      break;
    default:
      break;
  }
  changed_.notify_all();
}

void PodLink::take_status(ContainerStatus now) {
  const auto [known, is_new] = status.containers.try_emplace(now.name);
  ContainerStatus& last = known->second;
  // Reported twice: by an event and by the answer to hello.
  if (!is_new && (now.attempt < last.attempt ||
                  (now.attempt == last.attempt && (last.is_over() || now.state == last.state)))) {
    return;
  }
  last = std::move(now);
  if (on_status) on_status(last);
}

void PodLink::take_exec(Message message, shim::Reader reader, std::vector<Fd> fds) {
  uint64_t id = 0;
  ExecState news;
  shim::FieldValue value;
  while (reader.next(value)) {
    if (value.field == Field::kExecId) id = value.number();
    if (value.field == Field::kError) news.error = value.text;
    if (value.field == Field::kExitCode) news.result.exit_code = static_cast<int>(value.number());
    if (value.field == Field::kExitSignal) {
      news.result.exit_signal = static_cast<int>(value.number());
    }
  }
  const auto exec = execs.find(id);
  if (exec == execs.end()) return;
  exec->second.started = true;
  if (message == Message::kExecStarted && !fds.empty()) exec->second.terminal = std::move(fds[0]);
  if (message == Message::kExecStarted) return;
  exec->second.ended = true;
  exec->second.error = std::move(news.error);
  exec->second.result = news.result;
}

Task<Result<ContainerStatus>> PodLink::wait_for_start(std::string container, uint64_t attempt) {
  while (true) {
    const auto known = status.containers.find(container);
    if (known != status.containers.end() && known->second.attempt == attempt &&
        known->second.state != ContainerState::kStarting) {
      if (known->second.state == ContainerState::kFailedToStart) {
        co_return fail(Reason::kSystem, "{}", known->second.error);
      }
      co_return known->second;
    }
    if (!connection_) co_return gone();
    co_await changed_.wait();
  }
}

Task<Result<ContainerStatus>> PodLink::wait_for_end(std::string container) {
  while (true) {
    const auto known = status.containers.find(container);
    if (known != status.containers.end() && known->second.is_over()) co_return known->second;
    if (!connection_) co_return gone();
    co_await changed_.wait();
  }
}

Task<Result<>> PodLink::wait_for_exec_start(uint64_t id) {
  while (true) {
    const auto exec = execs.find(id);
    if (exec == execs.end()) co_return fail(Reason::kNotFound, "no exec {}", id);
    if (!exec->second.error.empty()) co_return fail(Reason::kSystem, "{}", exec->second.error);
    if (exec->second.started) co_return Result<>();
    if (!connection_) co_return gone();
    co_await changed_.wait();
  }
}

Task<Result<ExecResult>> PodLink::wait_for_exec_end(uint64_t id) {
  while (true) {
    const auto exec = execs.find(id);
    if (exec == execs.end()) co_return fail(Reason::kNotFound, "no exec {}", id);
    if (exec->second.ended) {
      const ExecResult result = exec->second.result;
      execs.erase(exec);
      co_return result;
    }
    if (!connection_) co_return gone();
    co_await changed_.wait();
  }
}

Task<> PodLink::wait_for_disconnect() {
  while (connection_) co_await changed_.wait();
}

void PodLink::read_records() {
  for (const std::string& container : names_in(directory + "/c")) {
    uint64_t latest = 0;
    for (const std::string& text : names_in(directory + "/c/" + container)) {
      uint64_t attempt = 0;
      std::from_chars(text.data(), text.data() + text.size(), attempt);
      latest = std::max(latest, attempt);
    }
    const auto record = read_file(fmt::format("{}/exit-{}-{}", directory, container, latest));
    ContainerStatus found{.name = container, .attempt = latest, .state = ContainerState::kLost};
    if (record) found = decode_status(without_kind(*record));
    take_status(std::move(found));
  }
}

}  // namespace grapnel::local
