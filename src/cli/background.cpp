#include "cli/background.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <iostream>
#include <thread>
#include <vector>

#include "base/strings.h"
#include "document/json.h"

extern char** environ;

namespace grapnel::cli {
namespace {

std::string last_lines(const ClusterPaths& paths) {
  constexpr size_t kMost = 2000;
  const auto text = read_file(paths.log());
  if (!text) return "";
  return text->size() <= kMost ? *text : text->substr(text->size() - kMost);
}

// What the machine cannot do, and what the options mean: nobody reads the log of what works.
void tell_warnings(const ClusterPaths& paths) {
  const auto text = read_file(paths.log());
  if (!text) return;
  for (const auto line : split(*text, '\n')) {
    const auto entry = parse_json(line);
    if (!entry || string_or(find(*entry, "level")) != "warning") continue;
    std::cerr << "grapnel: " << string_or(find(*entry, "msg")) << "\n";
  }
}

Result<int> spawn_detached(const ClusterPaths& paths, std::vector<std::string> arguments) {
  std::vector<char*> argv;
  for (auto& argument : arguments) argv.push_back(argument.data());
  argv.push_back(nullptr);
  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&files, STDOUT_FILENO, paths.log().c_str(),
                                   O_WRONLY | O_CREAT | O_TRUNC, 0600);
  posix_spawn_file_actions_adddup2(&files, STDOUT_FILENO, STDERR_FILENO);
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
  // A kubeconfig from last time would look like success.
  std::error_code ignored;
  std::filesystem::remove(paths.kubeconfig(), ignored);
  std::vector<std::string> arguments{"grapnel",         "up",
                                     "--name",          options.name,
                                     "--oversubscribe", fmt::format("{}", options.oversubscribe),
                                     "--port",          std::to_string(options.port)};
  if (options.without_operator) arguments.push_back("--no-operator");
  auto pid = spawn_detached(paths, std::move(arguments));
  if (!pid) return pid;
  constexpr auto kLongest = std::chrono::seconds(60);
  const auto deadline = std::chrono::steady_clock::now() + kLongest;
  while (!std::filesystem::exists(paths.kubeconfig())) {
    int status = 0;
    if (::waitpid(*pid, &status, WNOHANG) == *pid) {
      return fail(Reason::kSystem, "the cluster did not start; the end of {}:\n{}",
                  paths.log().string(), last_lines(paths));
    }
    if (std::chrono::steady_clock::now() > deadline) {
      return fail(Reason::kTimeout, "the cluster (pid {}) does not serve after 60 s; see {}", *pid,
                  paths.log().string());
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  tell_warnings(paths);
  return *pid;
}

}  // namespace grapnel::cli
