// Three processes: grapnel starts the launcher. The launcher joins the cluster's namespaces, makes
// those of the pod by starting the shim in them, connects the pod to the bridge, and ends. The shim
// is then a child of init, and the first process of the pod's PID namespace: when it dies, for
// whatever reason, the kernel ends everything in the pod.
#include "local/node/shim/launch.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "local/node/shim/anchor.h"
#include "local/node/shim/config.h"
#include "local/node/shim/container.h"
#include "local/node/shim/netlink.h"
#include "local/node/shim/remove_tree.h"
#include "local/node/shim/supervisor.h"
#include "local/node/shim/util.h"

namespace grapnel::local::shim {
namespace {

Config decode(std::string_view bytes) {
  Config c;
  c.fields = bytes;
  Reader reader(bytes);
  FieldValue value;
  while (reader.next(value)) {
    switch (value.field) {
      case Field::kPodDirectory:
        c.directory = value.text.data();
        break;
      case Field::kHostname:
        c.hostname = value.text.data();
        break;
      case Field::kDomainName:
        c.domain = value.text.data();
        break;
      case Field::kShmBytes:
        c.shm_bytes = value.number();
        break;
      case Field::kUserNamespaceFd:
        c.user_fd = static_cast<int>(value.number());
        break;
      case Field::kNetworkNamespaceFd:
        c.network_fd = static_cast<int>(value.number());
        break;
      case Field::kNamespaces:
        c.namespaces = value.number();
        break;
      case Field::kReportFd:
        c.report_fd = static_cast<int>(value.number());
        break;
      case Field::kVethName:
        c.veth = value.text.data();
        break;
      case Field::kBridge:
        c.bridge = value.text.data();
        break;
      case Field::kAddress:
        c.address = value.text.data();
        break;
      case Field::kPrefixLength:
        c.prefix = static_cast<unsigned>(value.number());
        break;
      case Field::kGateway:
        c.gateway = value.text.data();
        break;
      case Field::kDnsAddress:
        c.dns_address = value.text.data();
        break;
      case Field::kOuterUser:
        c.outer_user = static_cast<unsigned>(value.number());
        break;
      case Field::kHostPid:
        c.starter = static_cast<int>(value.number());
        break;
      case Field::kOuterGroup:
        c.outer_group = static_cast<unsigned>(value.number());
        break;
      default:
        break;
    }
  }
  return c;
}

// We are user 0 in there, and whoever started us outside.
bool map_user(const Config& c) {
  char line[64];
  if (!write_small("/proc/self/setgroups", "deny")) return false;
  snprintf(line, sizeof line, "0 %u 1", c.outer_user);
  if (!write_small("/proc/self/uid_map", line)) return false;
  snprintf(line, sizeof line, "0 %u 1", c.outer_group);
  return write_small("/proc/self/gid_map", line);
}

// Keep nothing of the process that started us: no terminal, no open files, no working directory.
bool become_daemon(const Config& c, int keep) {
  setsid();
  if (c.directory != nullptr && chdir(c.directory) != 0) return failed("entering %s", c.directory);
  const int null = open("/dev/null", O_RDWR | O_CLOEXEC);
  if (null < 0) return failed("opening /dev/null");
  for (int fd = 0; fd < 3; ++fd) dup2(null, fd);
  const int kept = fcntl(keep, F_DUPFD_CLOEXEC, 3);
  if (kept < 0 || dup3(kept, 3, O_CLOEXEC) < 0) {
    if (kept != 3) return failed("keeping a file open");
  }
  return syscall(SYS_close_range, 4U, ~0U, 0) == 0 || failed("closing files");
}

bool has(const Config& c, uint64_t flag) {
  return (c.namespaces & flag) != 0;
}

// For the pod's containers alone: the host does not see this mount, and it ends with the shim.
bool mount_memory(const char* path, uint64_t bytes, unsigned long flags) {
  char options[64];
  snprintf(options, sizeof options, "mode=1777,size=%lu", static_cast<unsigned long>(bytes));
  return mount("tmpfs", path, "tmpfs", MS_NOSUID | MS_NODEV | flags, options) == 0 ||
         failed("mounting %s", path);
}

bool mount_volumes(const Config& c) {
  Reader reader(c.fields);
  FieldValue value;
  uint64_t bytes = 0;
  while (reader.next(value)) {
    if (value.field == Field::kMemoryBytes) bytes = value.number();
    if (value.field == Field::kMemoryDirectory && !mount_memory(value.text.data(), bytes, 0)) {
      return false;
    }
  }
  return true;
}

bool set_up_pod(const Config& c) {
  if (has(c, CLONE_NEWUTS) && (sethostname(c.hostname, strlen(c.hostname)) != 0 ||
                               setdomainname(c.domain, strlen(c.domain)) != 0)) {
    return failed("setting the host name");
  }
  if (has(c, CLONE_NEWNS)) {
    if (mount(nullptr, "/", nullptr, MS_REC | MS_SLAVE, nullptr) != 0) {
      return failed("parting from the host's mounts");
    }
    if (c.shm_bytes != 0 && !mount_memory("shm", c.shm_bytes, MS_NOEXEC)) return false;
    if (!mount_volumes(c)) return false;
  }
  if (!has(c, CLONE_NEWNET)) return true;
  Netlink netlink;
  if (!netlink.open() || !netlink.set_up("lo")) return false;
  // As in a container: low ports and ping need no privilege.
  write_small("/proc/sys/net/ipv4/ip_unprivileged_port_start", "0");
  write_small("/proc/sys/net/ipv4/ping_group_range",
              has(c, CLONE_NEWUSER) ? "0 0" : "0 2147483647");
  if (c.veth == nullptr) return true;
  return netlink.add_address("eth0", c.address, c.prefix) && netlink.set_up("eth0") &&
         netlink.add_default_route(c.gateway);
}

// One byte each way: "your link is there", "I am ready".
bool wait_for_byte(int fd) {
  char byte = 0;
  ssize_t got = 0;
  do {
    got = read(fd, &byte, 1);
  } while (got < 0 && errno == EINTR);
  return got == 1;
}

bool write_pid_file() {
  char text[64];
  char stat_line[512] = {};
  // The start time tells this process from a later one with the same number.
  read_small("/proc/self/stat", stat_line, sizeof stat_line);
  const char* field = strrchr(stat_line, ')');
  for (int i = 0; field != nullptr && i < 20; ++i) field = strchr(field + 1, ' ');
  snprintf(text, sizeof text, "%d %llu\n", host_pid(),
           field != nullptr ? strtoull(field + 1, nullptr, 10) : 0ULL);
  const int fd = open("shim.pid", O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  if (fd < 0) return failed("writing shim.pid");
  const bool ok = write_all(fd, text, strlen(text));
  close(fd);
  return ok || failed("writing shim.pid");
}

using Serve = void (*)(const Config&, int listener);
using SetUp = bool (*)(const Config&);

[[noreturn]] void be_the_shim(const Config& c, int launcher, SetUp set_up, Serve serve) {
  const auto give_up = [](int to) {
    write_all(to, failure(), strlen(failure()));
    _exit(1);
  };
  if (has(c, CLONE_NEWUSER) && !map_user(c)) give_up(launcher);
  if (!become_daemon(c, launcher)) give_up(launcher);
  launcher = 3;
  if (!wait_for_byte(launcher)) _exit(1);
  if (!set_up(c) || !write_pid_file()) give_up(launcher);
  const int listener = listen_here(kSocketName);
  if (listener < 0) give_up(launcher);
  // If nobody waits for us any more, nobody will use us either.
  if (!write_all(launcher, "", 1)) _exit(1);
  close(launcher);
  serve(c, listener);
  _exit(0);
}

int report(const Config& c, const char* text, int code) {
  write_all(c.report_fd, text, strlen(text));
  return code;
}

int launch(const Config& c, SetUp set_up, Serve serve) {
  // A launcher that outlived grapnel would start a pod that the next grapnel takes for dead.
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != c.starter) return 1;
  signal(SIGPIPE, SIG_IGN);
  if (c.user_fd >= 0 && setns(c.user_fd, CLONE_NEWUSER) != 0) {
    failed("joining the cluster's user namespace");
    return report(c, failure(), 1);
  }
  if (c.network_fd >= 0 && setns(c.network_fd, CLONE_NEWNET) != 0) {
    failed("joining the cluster's network");
    return report(c, failure(), 1);
  }
  int pair[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0) {
    failed("making a socket");
    return report(c, failure(), 1);
  }
  const pid_t pid = fork_with(c.namespaces, nullptr);
  if (pid < 0) {
    failed("making the namespaces");
    return report(c, failure(), 1);
  }
  if (pid == 0) {
    close(pair[0]);
    be_the_shim(c, pair[1], set_up, serve);
  }
  close(pair[1]);
  bool ok = true;
  if (c.veth != nullptr) {
    Netlink netlink;
    ok = netlink.open() &&
         netlink.add_veth(c.veth, c.bridge, {.name = "eth0", .address = c.address, .pid = pid});
  }
  char answer[1024] = {};
  if (ok) {
    write_all(pair[0], "g", 1);
    const ssize_t size = read(pair[0], answer, sizeof answer - 1);
    ok = size == 1 && answer[0] == '\0';
    if (!ok) refused("%s", size > 0 ? answer : "the shim died");
  }
  if (!ok) {
    kill(pid, SIGKILL);
    return report(c, failure(), 1);
  }
  char text[32];
  snprintf(text, sizeof text, "ok %d", pid);
  return report(c, text, 0);
}

void serve_pod(const Config& c, int listener) {
  if (!has(c, CLONE_NEWPID)) prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
  supervise(listener);
}

}  // namespace

int launch_pod(std::string_view config) {
  return launch(decode(config), set_up_pod, serve_pod);
}

int sweep(std::string_view config) {
  const Config c = decode(config);
  const bool ok = c.directory != nullptr && remove_tree(AT_FDCWD, c.directory);
  return report(c, ok ? "ok" : failure(), ok ? 0 : 1);
}

int launch_anchor(std::string_view config) {
  return launch(decode(config), set_up_anchor, serve_anchor);
}

}  // namespace grapnel::local::shim
