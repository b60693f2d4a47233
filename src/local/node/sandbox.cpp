#include "local/node/sandbox.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <map>

#include "base/fd.h"
#include "base/files.h"
#include "base/strings.h"

namespace grapnel::local {
namespace {

constexpr int kAll = CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWNET;

bool put(const char* path, const char* text) {
  const Fd fd(open(path, O_WRONLY | O_CLOEXEC));
  return fd && write(fd.get(), text, strlen(text)) == static_cast<ssize_t>(strlen(text));
}

// Some systems let anyone make a user namespace, but give no rights in it: so use one, too.
bool can_isolate(bool with_user) {
  const pid_t child = fork();
  if (child == 0) {
    const unsigned user = geteuid();
    if (unshare(kAll | (with_user ? CLONE_NEWUSER : 0)) != 0) _exit(1);
    if (with_user) {
      char map[32];
      snprintf(map, sizeof map, "0 %u 1", user);
      if (!put("/proc/self/setgroups", "deny") || !put("/proc/self/uid_map", map)) _exit(1);
    }
    _exit(mount(nullptr, "/", nullptr, MS_REC | MS_SLAVE, nullptr) == 0 ? 0 : 1);
  }
  int status = 1;
  while (child > 0 && waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return child > 0 && status == 0;
}

std::string what_forbids() {
  const auto value = [](const char* path) {
    const auto text = read_file(path);
    return text ? std::string(trim(*text)) : std::string();
  };
  if (value("/proc/sys/user/max_user_namespaces") == "0") {
    return "user namespaces are switched off (sysctl user.max_user_namespaces is 0)";
  }
  if (value("/proc/sys/kernel/unprivileged_userns_clone") == "0") {
    return "user namespaces are kept to root (sysctl kernel.unprivileged_userns_clone is 0)";
  }
  if (value("/proc/sys/kernel/apparmor_restrict_unprivileged_userns") == "1") {
    return "AppArmor forbids user namespaces (sysctl kernel.apparmor_restrict_unprivileged_userns "
           "is 1)";
  }
  return "this system forbids namespaces (inside a container: start it with --privileged or "
         "--security-opt seccomp=unconfined)";
}

}  // namespace

IsolationFound find_isolation() {
  if (geteuid() == 0 && can_isolate(false)) return {.isolation = Isolation::kRoot, .why = ""};
  if (can_isolate(true)) return {.isolation = Isolation::kUser, .why = ""};
  return {.isolation = Isolation::kNone, .why = what_forbids()};
}

std::string full_name(const PodSpec& pod) {
  if (pod.subdomain.empty()) return pod.hostname;
  return fmt::format("{}.{}.{}.svc.{}", pod.hostname, pod.subdomain, pod.name_space,
                     kClusterDomain);
}

std::string hosts_file(const PodSpec& pod, std::string_view address) {
  std::string text =
      "# Kubernetes-managed hosts file.\n"
      "127.0.0.1\tlocalhost\n"
      "::1\tlocalhost ip6-localhost ip6-loopback\n"
      "fe00::0\tip6-localnet\n"
      "fe00::0\tip6-mcastprefix\n"
      "fe00::1\tip6-allnodes\n"
      "fe00::2\tip6-allrouters\n";
  const std::string name = full_name(pod);
  text += name == pod.hostname ? fmt::format("{}\t{}\n", address, name)
                               : fmt::format("{}\t{}\t{}\n", address, name, pod.hostname);
  if (!pod.host_aliases.empty()) text += "\n# Entries added by HostAliases.\n";
  for (const HostAlias& alias : pod.host_aliases) {
    text += fmt::format("{}\t{}\n", alias.address, join(alias.names, "\t"));
  }
  return text;
}

std::string own_name(const PodSpec& pod) {
  return pod.hostname_is_full ? full_name(pod) : pod.hostname;
}

std::string resolv_conf(const PodSpec& pod, std::string_view dns_address) {
  const Resolver& asked = pod.resolver;
  std::vector<std::string> servers;
  std::vector<std::string> searches;
  std::map<std::string, std::string> options;
  if (!asked.is_own) {
    servers.emplace_back(dns_address);
    searches = {fmt::format("{}.svc.{}", pod.name_space, kClusterDomain),
                fmt::format("svc.{}", kClusterDomain), std::string(kClusterDomain)};
    options["ndots"] = "5";
  }
  std::ranges::copy(asked.servers, std::back_inserter(servers));
  for (const std::string& search : asked.searches) {
    if (std::ranges::find(searches, search) == searches.end()) searches.push_back(search);
  }
  for (const auto& [name, value] : asked.options) options[name] = value;

  std::string text;
  if (!searches.empty()) text += fmt::format("search {}\n", join(searches, " "));
  for (const std::string& server : servers) text += fmt::format("nameserver {}\n", server);
  std::vector<std::string> words;
  for (const auto& [name, value] : options) {
    words.push_back(value.empty() ? name : fmt::format("{}:{}", name, value));
  }
  if (!words.empty()) text += fmt::format("options {}\n", join(words, " "));
  return text;
}

Result<> make_directory(const std::string& path, unsigned mode) {
  if (mkdir(path.c_str(), mode) == 0) {
    // The mode must be exactly this, whatever the umask.
    chmod(path.c_str(), mode);
    return {};
  }
  if (errno == EEXIST) return {};
  const size_t slash = path.rfind('/');
  if (errno != ENOENT || slash == 0 || slash == std::string::npos) {
    return fail(Reason::kSystem, "making {}: {}", path, strerror(errno));
  }
  if (auto parent = make_directory(path.substr(0, slash), mode & 0777U); !parent) return parent;
  if (mkdir(path.c_str(), mode) != 0 && errno != EEXIST) {
    return fail(Reason::kSystem, "making {}: {}", path, strerror(errno));
  }
  chmod(path.c_str(), mode);
  return {};
}

Result<> write_file(const std::string& path, std::string_view text, unsigned mode) {
  const Fd fd(open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, mode));
  if (!fd) return fail(Reason::kSystem, "writing {}: {}", path, strerror(errno));
  while (!text.empty()) {
    const ssize_t done = write(fd.get(), text.data(), text.size());
    if (done < 0 && errno == EINTR) continue;
    if (done <= 0) return fail(Reason::kSystem, "writing {}: {}", path, strerror(errno));
    text.remove_prefix(static_cast<size_t>(done));
  }
  fchmod(fd.get(), mode);
  return {};
}

Result<> prepare_pod_directory(const std::string& directory, const PodSpec& pod,
                               std::string_view address, std::string_view dns_address) {
  if (auto made = make_directory(directory + "/shm", 0755); !made) return made;
  for (const MemoryDirectory& memory : pod.memory) {
    if (auto made = make_directory(directory + "/" + memory.path, 0777); !made) return made;
  }
  // Secrets of the pod lie below it.
  chmod(directory.c_str(), 0700);
  if (auto done = write_file(directory + "/hosts", hosts_file(pod, address), 0644); !done) {
    return done;
  }
  if (auto done = write_file(directory + "/hostname", own_name(pod) + "\n", 0644); !done) {
    return done;
  }
  return write_file(directory + "/resolv.conf", resolv_conf(pod, dns_address), 0644);
}

}  // namespace grapnel::local
