// One pod as this program knows it: the link to its shim, and what the shim last said.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "base/async.h"
#include "base/result.h"
#include "local/node/connection.h"
#include "local/node/pod_runner.h"
#include "local/node/pod_spec.h"

namespace grapnel::local {

struct ExecState {
  bool started = false;
  bool ended = false;
  Fd terminal;
  std::string error;
  ExecResult result;
};

class PodLink : public std::enable_shared_from_this<PodLink> {
 public:
  PodLink(Executor executor, PodStatus status, std::string directory);
  ~PodLink();

  // Connects and learns what runs. An error: there is no shim any more.
  Task<Result<>> connect();
  bool is_connected() const { return connection_ != nullptr; }
  Result<> send(const std::string& message, const std::vector<int>& fds = {});

  // Until `container` is past `starting` in this attempt, or over.
  Task<Result<ContainerStatus>> wait_for_start(std::string container, uint64_t attempt);
  Task<Result<ContainerStatus>> wait_for_end(std::string container);
  Task<Result<>> wait_for_exec_start(uint64_t id);
  Task<Result<ExecResult>> wait_for_exec_end(uint64_t id);
  Task<> wait_for_disconnect();

  // There is no shim any more: containers with a record ended as it says, the others are lost.
  void read_records();

  PodStatus status;
  const std::string directory;
  bool share_processes = false;
  bool is_ending = false;  // losing the shim is what we want
  std::map<uint64_t, ExecState> execs;
  std::function<void(const ContainerStatus&)> on_status;
  std::function<void()> on_lost;

 private:
  static Task<> read(std::weak_ptr<PodLink> link, std::shared_ptr<Connection> connection);
  void lose_connection();
  void take(Connection::Packet packet);
  void take_status(ContainerStatus status);
  void take_exec(shim::Message message, shim::Reader reader, std::vector<Fd> fds);

  Executor executor_;
  std::shared_ptr<Connection> connection_;
  Signal changed_;
  bool said_hello_ = false;
  Spawned reader_;
};

}  // namespace grapnel::local
