#include "cli/paths.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <sstream>

#include "base/strings.h"

namespace grapnel::cli {

Result<ClusterPaths> paths_of_cluster(std::string_view name) {
  if (const auto why = why_not_dns1123_label(name); !why.empty()) {
    return fail(Reason::kUsage, "'{}' cannot be the name of a cluster: {}", name, why);
  }
  std::filesystem::path base;
  if (const char* state = std::getenv("XDG_STATE_HOME"); state != nullptr && state[0] == '/') {
    base = state;
  } else if (const char* home = std::getenv("HOME"); home != nullptr && home[0] == '/') {
    base = std::filesystem::path(home) / ".local" / "state";
  } else {
    return fail(Reason::kUsage, "neither XDG_STATE_HOME nor HOME says where to keep the cluster");
  }
  return ClusterPaths{base / "grapnel" / name};
}

Result<ClusterPaths> cluster_paths(std::string_view name) {
  auto paths = paths_of_cluster(name);
  if (!paths) return paths;
  std::error_code error;
  std::filesystem::create_directories(paths->root, error);
  if (error) {
    return fail(Reason::kSystem, "cannot make {}: {}", paths->root.string(), error.message());
  }
  ::chmod(paths->root.c_str(), 0700);
  return paths;
}

std::optional<int> running_pid(const ClusterPaths& paths) {
  const int file = ::open(paths.pid().c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return std::nullopt;
  // The owner holds a lock for as long as it lives: a pid alone may be somebody else's by now. To
  // try to lock it would keep an owner that is just starting out.
  struct flock lock{};
  lock.l_type = F_WRLCK;
  const bool held = ::fcntl(file, F_OFD_GETLK, &lock) == 0 && lock.l_type != F_UNLCK;
  ::close(file);
  if (!held) return std::nullopt;
  const auto text = read_file(paths.pid());
  if (!text) return std::nullopt;
  const int pid = std::atoi(text->c_str());
  return pid > 0 ? std::optional(pid) : std::nullopt;
}

Result<Fd> hold_pid_file(const ClusterPaths& paths) {
  Fd file(::open(paths.pid().c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  struct flock lock{};
  lock.l_type = F_WRLCK;
  if (!file || ::fcntl(file.get(), F_OFD_SETLK, &lock) != 0) {
    return fail(Reason::kConflict, "another process holds {}: is the cluster up already?",
                paths.pid().string());
  }
  const std::string text = std::to_string(::getpid()) + "\n";
  if (::ftruncate(file.get(), 0) != 0 || ::pwrite(file.get(), text.data(), text.size(), 0) < 0) {
    return fail(Reason::kSystem, "cannot write {}", paths.pid().string());
  }
  return file;
}

Result<std::string> working_directory() {
  std::error_code error;
  const auto path = std::filesystem::current_path(error);
  if (!error) return path.string();
  return fail(Reason::kUsage, "the current directory cannot be used: {}", error.message());
}

Result<> write_private_file(const std::filesystem::path& path, std::string_view text) {
  const std::string temporary = path.string() + ".new";
  const int file = ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  const bool written =
      file >= 0 && ::write(file, text.data(), text.size()) == static_cast<ssize_t>(text.size());
  const int reason = errno;
  if (file >= 0) ::close(file);
  if (!written || ::rename(temporary.c_str(), path.c_str()) != 0) {
    return fail(Reason::kSystem, "cannot write {}: {}", path.string(),
                std::strerror(written ? errno : reason));
  }
  return {};
}

Result<std::string> read_file(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  const bool is_empty = file && file.peek() == std::ifstream::traits_type::eof() && !file.bad();
  if (is_empty) return "";
  if (!file || !(text << file.rdbuf())) {
    return fail(Reason::kSystem, "cannot read {}: {}", path.string(), std::strerror(errno));
  }
  return text.str();
}

}  // namespace grapnel::cli
