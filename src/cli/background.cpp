#include "cli/background.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <iostream>
#include <vector>

#include "base/fd.h"
#include "cli/start_report.h"

extern char** environ;

namespace grapnel::cli {
namespace {

std::string last_lines(const ClusterPaths& paths) {
  constexpr size_t kMost = 2000;
  const auto text = read_file(paths.log());
  if (!text) return "";
  return text->size() <= kMost ? *text : text->substr(text->size() - kMost);
}

constexpr int kReportFd = 3;  // of the child

Result<int> spawn_detached(const ClusterPaths& paths, std::vector<std::string> arguments,
                           int report) {
  std::vector<char*> argv;
  for (auto& argument : arguments) argv.push_back(argument.data());
  argv.push_back(nullptr);
  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&files, STDOUT_FILENO, paths.log().c_str(),
                                   O_WRONLY | O_CREAT | O_TRUNC, 0600);
  posix_spawn_file_actions_adddup2(&files, STDOUT_FILENO, STDERR_FILENO);
  posix_spawn_file_actions_adddup2(&files, report, kReportFd);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSID);
  pid_t pid = 0;
  const int error = posix_spawn(&pid, "/proc/self/exe", &files, &attributes, argv.data(), environ);
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&files);
  if (error != 0) {
    return fail(Reason::kSystem, "cannot start the cluster's process: {}", std::strerror(error));
  }
  return pid;
}

}  // namespace

Result<int> start_in_background(const ClusterPaths& paths, const ClusterOptions& options) {
  if (const auto here = working_directory(); !here) return fail(here.error());
  // Not a pipe(2): the child writes to it when we may have gone.
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) {
    return fail(Reason::kSystem, "cannot make a pipe: {}", std::strerror(errno));
  }
  const Fd ours(ends[0]);
  Fd theirs(ends[1]);
  std::vector<std::string> arguments{"grapnel",         "up",
                                     "--name",          options.name,
                                     "--oversubscribe", fmt::format("{}", options.oversubscribe),
                                     "--port",          std::to_string(options.port),
                                     "--report-fd",     std::to_string(kReportFd)};
  if (options.without_operator) arguments.push_back("--no-operator");
  auto pid = spawn_detached(paths, std::move(arguments), theirs.get());
  if (!pid) return pid;
  theirs.reset();
  const auto report = read_start_report(ours.get(), seconds(60));
  if (!report) {
    return fail(Reason::kTimeout, "the cluster (pid {}) is not ready after 60 s; see {}", *pid,
                paths.log().string());
  }
  for (const auto& warning : report->warnings) std::cerr << "grapnel: " << warning << "\n";
  if (report->ready) return *pid;
  if (!report->failure.empty()) {
    return fail(Reason::kSystem, "the cluster did not start: {}", report->failure);
  }
  return fail(Reason::kSystem, "the cluster did not start; the end of {}:\n{}",
              paths.log().string(), last_lines(paths));
}

}  // namespace grapnel::cli
