#include "http/server.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <cerrno>
#include <map>
#include <vector>

#include "base/log.h"
#include "http/connection.h"
#include "http/tls.h"

namespace grapnel::http {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;

// Shared by the Server, the accepting Task and every open channel's lease.
struct Core : std::enable_shared_from_this<Core> {
  Core(const Executor& executor_in, std::shared_ptr<ServerShared> shared_in)
      : executor(executor_in),
        shared(std::move(shared_in)),
        acceptor(executor_in),
        changed(executor_in) {}

  // A channel that is open: its connection while one runs, afterwards what it was upgraded to.
  struct Entry {
    std::weak_ptr<Channel> channel;
    std::weak_ptr<Connection> connection;
    Spawned task;
  };

  Executor executor;
  std::shared_ptr<ServerShared> shared;
  TlsContext tls;
  tcp::acceptor acceptor;
  Signal changed;
  std::map<uint64_t, Entry> entries;
  uint64_t next_id = 0;
};

struct Lease {
  std::weak_ptr<Core> core;
  uint64_t id;
  Lease(std::weak_ptr<Core> core_in, uint64_t id_in) : core(std::move(core_in)), id(id_in) {}
  Lease(const Lease&) = delete;
  Lease& operator=(const Lease&) = delete;
  ~Lease() {
    const auto c = core.lock();
    if (!c) return;
    const auto found = c->entries.find(id);
    if (found == c->entries.end()) return;
    found->second.task.detach();  // it is ending, or has
    c->entries.erase(found);
    c->changed.notify_all();
  }
};

Task<> serve(std::shared_ptr<Connection> connection) {
  co_await connection->run();
}

void set_option(int fd, int level, int name, int value) {
  ::setsockopt(fd, level, name, &value, sizeof value);
}

void tune(int fd) {
  set_option(fd, IPPROTO_TCP, TCP_NODELAY, 1);
  set_option(fd, SOL_SOCKET, SO_KEEPALIVE, 1);
  set_option(fd, IPPROTO_TCP, TCP_KEEPIDLE, 30);
  set_option(fd, IPPROTO_TCP, TCP_KEEPINTVL, 10);
  set_option(fd, IPPROTO_TCP, TCP_KEEPCNT, 3);
  // Long enough for someone who stopped a terminal for a while.
  set_option(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, 300'000);
}

std::string text_of(const tcp::endpoint& endpoint) {
  const auto address = endpoint.address();
  return address.is_v6() ? fmt::format("[{}]:{}", address.to_string(), endpoint.port())
                         : fmt::format("{}:{}", address.to_string(), endpoint.port());
}

void turn_away(int fd, bool speaks_tls) {
  static constexpr std::string_view kFull =
      "HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
  if (!speaks_tls) (void)::send(fd, kFull.data(), kFull.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
  ::close(fd);
}

void welcome(Core& core, int fd, std::string peer) {
  tune(fd);
  const uint64_t id = core.next_id++;
  auto channel = core.tls ? make_tls_channel(core.executor, fd, core.tls)
                          : std::make_shared<Channel>(core.executor, fd);
  channel->hold(std::make_shared<Lease>(core.weak_from_this(), id));
  const auto connection = std::make_shared<Connection>(core.shared, channel, std::move(peer));
  core.entries[id] = {.channel = channel, .connection = connection, .task = {}};
  channel.reset();
  auto task = spawn(core.executor, serve(connection));
  const auto entry = core.entries.find(id);
  if (entry == core.entries.end()) {
    task.detach();
  } else {
    entry->second.task = std::move(task);
  }
}

// False when there is nothing to accept now.
bool accept_one(Core& core, ErrorCode& error) {
  tcp::endpoint peer;
  auto size = static_cast<socklen_t>(peer.capacity());
  const int fd =
      ::accept4(core.acceptor.native_handle(), peer.data(), &size, SOCK_NONBLOCK | SOCK_CLOEXEC);
  if (fd < 0) {
    const bool again = errno == EAGAIN || errno == EINTR || errno == ECONNABORTED;
    if (!again) error = ErrorCode(errno, boost::system::system_category());
    return false;
  }
  peer.resize(size);
  if (core.entries.size() >= core.shared->options.max_connections) {
    turn_away(fd, core.tls != nullptr);
  } else {
    welcome(core, fd, text_of(peer));
  }
  return true;
}

Task<> accept_all(std::shared_ptr<Core> core) {
  while (core->acceptor.is_open()) {
    const auto [failed] = co_await core->acceptor.async_wait(tcp::acceptor::wait_read,
                                                             asio::as_tuple(asio::use_awaitable));
    if (failed || !core->acceptor.is_open()) co_return;
    ErrorCode error;
    for (int i = 0; i < 64 && accept_one(*core, error); ++i) {
    }
    if (error) {
      // Most likely too many open files: those waiting are served when some have closed.
      log_warning("cannot accept connections", {{"error", error.message()}});
      co_await system_clock().sleep(milliseconds(100));
    }
  }
}

Task<> until_empty(std::shared_ptr<Core> core) {
  while (!core->entries.empty()) co_await core->changed.wait();
}

Task<> stop_core(std::shared_ptr<Core> core, std::shared_ptr<Spawned> accepting, Duration grace) {
  ErrorCode ignored;
  core->acceptor.close(ignored);
  core->shared->stopping = true;
  co_await accepting->join();
  std::vector<std::shared_ptr<Connection>> idle;
  for (const auto& [id, entry] : core->entries) {
    auto connection = entry.connection.lock();
    if (connection && connection->is_idle()) idle.push_back(std::move(connection));
  }
  for (const auto& connection : idle) connection->close();
  idle.clear();
  const Instant deadline = system_clock().instant() + grace;
  if (co_await with_deadline(system_clock(), deadline, until_empty(core))) co_return;

  std::vector<Spawned> tasks;
  std::vector<std::shared_ptr<Channel>> channels;
  for (auto& [id, entry] : core->entries) {
    tasks.push_back(std::move(entry.task));
    channels.push_back(entry.channel.lock());
  }
  for (auto& task : tasks) task.cancel();
  for (auto& task : tasks) co_await task.join();
  for (const auto& channel : channels) {
    if (channel) channel->close();
  }
}

class AsioServer final : public Server {
 public:
  explicit AsioServer(std::shared_ptr<Core> core)
      : core_(std::move(core)),
        accepting_(std::make_shared<Spawned>(spawn(core_->executor, accept_all(core_)))),
        port_(core_->acceptor.local_endpoint().port()) {}
  AsioServer(const AsioServer&) = delete;
  AsioServer& operator=(const AsioServer&) = delete;

  ~AsioServer() override {
    ErrorCode ignored;
    core_->acceptor.close(ignored);
    core_->shared->stopping = true;
    accepting_->cancel();
    std::vector<std::shared_ptr<Channel>> channels;
    for (auto& [id, entry] : core_->entries) {
      entry.task.cancel();
      channels.push_back(entry.channel.lock());
    }
    for (const auto& channel : channels) {
      if (channel) channel->close();
    }
  }

  uint16_t port() const override { return port_; }

  Result<> set_certificate(std::string certificate_pem, std::string key_pem) override {
    auto tls = make_server_context({.certificate_pem = std::move(certificate_pem),
                                    .key_pem = std::move(key_pem),
                                    .client_ca_pem = core_->shared->options.client_ca_pem});
    if (!tls) return fail(tls.error());
    core_->tls = std::move(*tls);
    return {};
  }

  Task<> stop(Duration grace) override { return stop_core(core_, accepting_, grace); }

 private:
  std::shared_ptr<Core> core_;
  std::shared_ptr<Spawned> accepting_;
  uint16_t port_;
};

Result<> listen_on(tcp::acceptor& acceptor, const ServerOptions& options) {
  ErrorCode error;
  const std::string host = options.address == "localhost" ? "127.0.0.1" : options.address;
  const auto address = asio::ip::make_address(host, error);
  if (error) return fail(Reason::kUsage, "'{}' is not an IP address to listen on", host);
  const tcp::endpoint endpoint(address, options.port);
  acceptor.open(endpoint.protocol(), error);
  if (!error) acceptor.set_option(tcp::acceptor::reuse_address(true), error);
  if (!error) acceptor.bind(endpoint, error);
  if (!error) acceptor.listen(4096, error);
  if (!error) acceptor.non_blocking(true, error);
  if (error) {
    return fail(Reason::kSystem, "cannot listen on {}: {}", text_of(endpoint), error.message());
  }
  ::fcntl(acceptor.native_handle(), F_SETFD, FD_CLOEXEC);
  return {};
}

}  // namespace

Result<std::unique_ptr<Server>> start_server(Executor executor, ServerOptions options,
                                             Handler handler) {
  TlsContext tls;
  if (!options.certificate_pem.empty()) {
    auto made = make_server_context({.certificate_pem = options.certificate_pem,
                                     .key_pem = options.key_pem,
                                     .client_ca_pem = options.client_ca_pem});
    if (!made) return fail(made.error());
    tls = std::move(*made);
  }
  auto core = std::make_shared<Core>(
      executor, std::make_shared<ServerShared>(
                    ServerShared{.options = std::move(options), .handler = std::move(handler)}));
  core->tls = std::move(tls);
  if (auto ok = listen_on(core->acceptor, core->shared->options); !ok) return fail(ok.error());
  return std::make_unique<AsioServer>(std::move(core));
}

}  // namespace grapnel::http
