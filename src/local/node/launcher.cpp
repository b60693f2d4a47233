#include "local/node/launcher.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/buffer.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <cerrno>
#include <charconv>
#include <cstring>

#include "base/fd.h"
#include "local/node/shim_protocol.h"

namespace grapnel::local {
namespace asio = boost::asio;
namespace {

constexpr int kConfigFd = 3;
constexpr int kReportFd = 4;

// Numbers above those that the child is given, so that one dup2 cannot overwrite the next's source.
Fd out_of_the_way(int fd) {
  return Fd(fcntl(fd, F_DUPFD_CLOEXEC, 64));
}

class Spawn {
 public:
  Spawn() {
    posix_spawn_file_actions_init(&actions_);
    posix_spawnattr_init(&attributes_);
    sigset_t none;
    sigset_t all;
    sigemptyset(&none);
    sigfillset(&all);
    posix_spawnattr_setsigmask(&attributes_, &none);
    posix_spawnattr_setsigdefault(&attributes_, &all);
    posix_spawnattr_setflags(&attributes_, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  }
  Spawn(const Spawn&) = delete;
  Spawn& operator=(const Spawn&) = delete;
  ~Spawn() {
    posix_spawn_file_actions_destroy(&actions_);
    posix_spawnattr_destroy(&attributes_);
  }
  void give(int fd, int as) {
    moved_.push_back(out_of_the_way(fd));
    posix_spawn_file_actions_adddup2(&actions_, moved_.back().get(), as);
  }
  Result<pid_t> run(const Launch& what) {
    std::string number = std::to_string(kConfigFd);
    std::vector<std::string> words = {"grapnel-shim", what.role, number, what.title};
    std::vector<char*> arguments;
    for (std::string& word : words) arguments.push_back(word.data());
    arguments.push_back(nullptr);
    char* environment[] = {nullptr};
    pid_t pid = -1;
    const int error = posix_spawn(&pid, what.program.c_str(), &actions_, &attributes_,
                                  arguments.data(), environment);
    if (error != 0) {
      return fail(Reason::kSystem, "starting {}: {}", what.program, strerror(error));
    }
    return pid;
  }

 private:
  posix_spawn_file_actions_t actions_{};
  posix_spawnattr_t attributes_{};
  std::vector<Fd> moved_;
};

Task<std::string> read_to_end(Fd fd) {
  asio::posix::stream_descriptor pipe(co_await asio::this_coro::executor, fd.release());
  std::string text;
  std::array<char, 512> chunk;
  while (true) {
    const auto [error, size] =
        co_await pipe.async_read_some(asio::buffer(chunk), asio::as_tuple(asio::use_awaitable));
    text.append(chunk.data(), size);
    if (error == asio::error::operation_aborted) throw boost::system::system_error(error);
    if (error) co_return text;
  }
}

// The launcher ends on its own within milliseconds; whoever stops waiting for it must not leave its
// remains behind.
struct Child {
  pid_t pid;
  ~Child() {
    while (waitpid(pid, nullptr, 0) < 0 && errno == EINTR) {
    }
  }
};

}  // namespace

Result<int> bytes_as_fd(std::string_view bytes) {
  Fd fd(memfd_create("grapnel", MFD_CLOEXEC));
  if (!fd) return fail(Reason::kSystem, "memfd_create: {}", strerror(errno));
  while (!bytes.empty()) {
    const ssize_t done = write(fd.get(), bytes.data(), bytes.size());
    if (done < 0 && errno == EINTR) continue;
    if (done <= 0) return fail(Reason::kSystem, "writing to memory: {}", strerror(errno));
    bytes.remove_prefix(static_cast<size_t>(done));
  }
  return fd.release();
}

Task<Result<int>> launch(Launch what) {
  shim::Writer writer(what.config);
  writer.number(shim::Field::kReportFd, kReportFd);
  writer.number(shim::Field::kHostPid, static_cast<uint64_t>(getpid()));
  auto config = bytes_as_fd(what.config);
  if (!config) co_return fail(config.error());
  const Fd config_fd(*config);
  int pipe_fds[2];
  if (pipe2(pipe_fds, O_CLOEXEC) != 0) co_return fail(Reason::kSystem, "pipe: {}", strerror(errno));
  Fd read_end(pipe_fds[0]);
  Fd write_end(pipe_fds[1]);

  Result<pid_t> started = fail(Reason::kSystem, "not started");
  {
    Spawn spawn;
    spawn.give(config_fd.get(), kConfigFd);
    spawn.give(write_end.get(), kReportFd);
    for (size_t i = 0; i < what.fds.size(); ++i) {
      spawn.give(what.fds[i], kFirstLaunchFd + static_cast<int>(i));
    }
    started = spawn.run(what);
  }
  write_end.reset();
  if (!started) co_return fail(started.error());
  const Child child{*started};
  const std::string report = co_await read_to_end(std::move(read_end));
  if (!report.starts_with("ok")) {
    co_return fail(Reason::kSystem, "{}",
                   report.empty() ? "the shim ended without a word" : report);
  }
  int pid = 0;
  if (report.size() > 3) std::from_chars(report.data() + 3, report.data() + report.size(), pid);
  co_return pid;
}

}  // namespace grapnel::local
