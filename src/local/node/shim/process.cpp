#include "local/node/shim/process.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "local/node/shim/mounts.h"
#include "local/node/shim/util.h"

namespace grapnel::local::shim {
namespace {

[[noreturn]] void give_up(int report) {
  Buffer message;
  const char kind = static_cast<char>(ChildReport::kFailure);
  message.append(&kind, 1);
  message.append(failure(), strlen(failure()));
  send_packet(report, message.view(), nullptr, 0);
  _exit(128);
}

void report_number(int report, ChildReport kind, int number) {
  char message[1 + sizeof number];
  message[0] = static_cast<char>(kind);
  memcpy(message + 1, &number, sizeof number);
  send_packet(report, {message, sizeof message}, nullptr, 0);
}

struct Program {
  char** arguments = nullptr;
  char** environment = nullptr;
  const char* directory = "/";
  const char* root = nullptr;
  uid_t user = 0;
  gid_t group = 0;
  bool set_user = false;
  gid_t extra_groups[64];
  size_t extra_group_count = 0;
  uint64_t capabilities = ~uint64_t{0};
  bool drop_capabilities = false;
  bool terminal = false;
  bool no_new_privileges = false;
  uint64_t process_limit = 0;
  uint64_t open_file_limit = 0;
  const char* oom_score = nullptr;
};

void append_pointer(Buffer& list, const char* text) {
  list.append(reinterpret_cast<const char*>(&text), sizeof text);
}

Program decode(std::string_view spec, Buffer& arguments, Buffer& environment) {
  Program p;
  Reader reader(spec);
  FieldValue value;
  while (reader.next(value)) {
    switch (value.field) {
      case Field::kArgument:
        append_pointer(arguments, value.text.data());
        break;
      case Field::kEnvironment:
        append_pointer(environment, value.text.data());
        break;
      case Field::kDirectory:
        p.directory = value.text.data();
        break;
      case Field::kRoot:
        p.root = value.text.data();
        break;
      case Field::kUser:
        p.user = static_cast<uid_t>(value.number());
        p.set_user = true;
        break;
      case Field::kGroup:
        p.group = static_cast<gid_t>(value.number());
        break;
      case Field::kExtraGroup:
        if (p.extra_group_count < 64) {
          p.extra_groups[p.extra_group_count++] = static_cast<gid_t>(value.number());
        }
        break;
      case Field::kCapabilities:
        p.capabilities = value.number();
        p.drop_capabilities = true;
        break;
      case Field::kTerminal:
        p.terminal = value.number() != 0;
        break;
      case Field::kNoNewPrivileges:
        p.no_new_privileges = value.number() != 0;
        break;
      case Field::kProcessLimit:
        p.process_limit = value.number();
        break;
      case Field::kOpenFileLimit:
        p.open_file_limit = value.number();
        break;
      case Field::kOomScore:
        p.oom_score = value.text.data();
        break;
      default:
        break;
    }
  }
  append_pointer(arguments, nullptr);
  append_pointer(environment, nullptr);
  p.arguments = reinterpret_cast<char**>(arguments.data());
  p.environment = reinterpret_cast<char**>(environment.data());
  return p;
}

bool join_cgroups(std::string_view spec) {
  Reader reader(spec);
  FieldValue value;
  while (reader.next(value)) {
    if (value.field == Field::kCgroupJoin && !write_small(value.text.data(), "0")) return false;
  }
  return true;
}

bool build_root(std::string_view spec, const char* root) {
  Reader reader(spec);
  FieldValue value;
  while (reader.next(value)) {
    if (value.field == Field::kMount && !apply_mount(root, value.text)) return false;
  }
  return enter_root(root);
}

// The terminal is made inside, with the container's own /dev/pts, so that its name is valid there.
bool take_terminal(int report) {
  const int master = open("/dev/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC);
  if (master < 0) return failed("opening /dev/ptmx");
  const int unlocked = 0;
  if (ioctl(master, TIOCSPTLCK, &unlocked) != 0) return failed("unlocking the terminal");
  const int terminal = ioctl(master, TIOCGPTPEER, O_RDWR | O_NOCTTY);
  if (terminal < 0) return failed("opening the terminal");
  const char kind = static_cast<char>(ChildReport::kTerminal);
  if (!send_packet(report, {&kind, 1}, &master, 1)) return failed("passing the terminal on");
  if (ioctl(terminal, TIOCSCTTY, 0) != 0) return failed("taking the terminal");
  for (int fd = 0; fd < 3; ++fd) dup2(terminal, fd);
  if (terminal > 2) close(terminal);
  close(master);
  return true;
}

bool set_stdio(const Stdio& stdio) {
  const int null = open("/dev/null", O_RDWR | O_CLOEXEC);
  if (null < 0) return failed("opening /dev/null");
  dup2(stdio.in >= 0 ? stdio.in : null, 0);
  dup2(stdio.out >= 0 ? stdio.out : null, 1);
  dup2(stdio.error >= 0 ? stdio.error : null, 2);
  if (null > 2) close(null);
  return true;
}

bool limit(int what, uint64_t most, const char* name) {
  if (most == 0) return true;
  const rlimit limits{.rlim_cur = most, .rlim_max = most};
  return setrlimit(static_cast<__rlimit_resource>(what), &limits) == 0 ||
         failed("limiting %s", name);
}

bool keep_capabilities(uint64_t mask, bool is_root) {
  __user_cap_header_struct head{.version = _LINUX_CAPABILITY_VERSION_3, .pid = 0};
  __user_cap_data_struct data[2] = {};
  if (!is_root) mask = 0;
  // Never more than we have ourselves.
  if (syscall(SYS_capget, &head, data) != 0) return failed("reading capabilities");
  for (unsigned half = 0; half < 2; ++half) {
    const auto kept = static_cast<uint32_t>(mask >> (32 * half));
    data[half].permitted &= kept;
    data[half].effective = data[half].permitted;
    data[half].inheritable = 0;
  }
  return syscall(SYS_capset, &head, data) == 0 || failed("dropping capabilities");
}

bool become(const Program& p) {
  if (p.drop_capabilities) {
    for (unsigned long c = 0; c < 64; ++c) {
      if ((p.capabilities >> c & 1) == 0 && prctl(PR_CAPBSET_DROP, c, 0, 0, 0) != 0) {
        if (errno == EINVAL) break;  // past the last that this kernel knows
        return failed("dropping capabilities");
      }
    }
  }
  if (p.set_user) {
    // In a user namespace of one user setgroups is forbidden, and not needed.
    if (setgroups(p.extra_group_count, p.extra_groups) != 0 && p.extra_group_count != 0) {
      return failed("setting the groups");
    }
    if (setresgid(p.group, p.group, p.group) != 0) return failed("becoming group %u", p.group);
    if (setresuid(p.user, p.user, p.user) != 0) return failed("becoming user %u", p.user);
  }
  if (p.drop_capabilities && !keep_capabilities(p.capabilities, p.user == 0)) return false;
  if (p.no_new_privileges && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) {
    return failed("forbidding new privileges");
  }
  return true;
}

bool enter_directory(const char* directory) {
  if (chdir(directory) == 0) return true;
  if (errno != ENOENT) return failed("entering the working directory %s", directory);
  const int root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
  const int made = make_directories(root, directory, 0755);
  close(root);
  if (made < 0 || fchdir(made) != 0) return failed("making the working directory %s", directory);
  close(made);
  return true;
}

const char* path_of(char** environment) {
  for (; *environment != nullptr; ++environment) {
    if (strncmp(*environment, "PATH=", 5) == 0) return *environment + 5;
  }
  return "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
}

// Only returns when it failed. The words are those of runc, which people search for.
bool execute(const Program& p) {
  const char* name = p.arguments[0];
  if (name == nullptr) return refused("no command specified");
  if (strchr(name, '/') != nullptr) {
    execve(name, p.arguments, p.environment);
    return failed("exec: \"%s\"", name);
  }
  char candidate[4096];
  int error = ENOENT;
  for (const char* path = path_of(p.environment);; ++path) {
    const size_t length = strcspn(path, ":");
    snprintf(candidate, sizeof candidate, "%.*s/%s", static_cast<int>(length), path, name);
    if (length != 0) {
      execve(candidate, p.arguments, p.environment);
      if (errno != ENOENT && errno != ENOTDIR) error = errno;
    }
    path += length;
    if (*path == '\0') break;
  }
  if (error == ENOENT) return refused("exec: \"%s\": executable file not found in $PATH", name);
  errno = error;
  return failed("exec: \"%s\"", name);
}

void forget_signals() {
  for (int s = 1; s < 65; ++s) signal(s, SIG_DFL);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
}

[[noreturn]] void finish(const Program& p, Stdio stdio, int report) {
  setsid();
  umask(0022);
  if (!(p.terminal ? take_terminal(report) : set_stdio(stdio))) give_up(report);
  if (!limit(RLIMIT_NPROC, p.process_limit, "processes") ||
      !limit(RLIMIT_NOFILE, p.open_file_limit, "open files") || !become(p) ||
      !enter_directory(p.directory)) {
    give_up(report);
  }
  forget_signals();
  // Everything the shim has open is close-on-exec, and it has closed what it inherited.
  execute(p);
  give_up(report);
}

}  // namespace

void run_container(std::string_view spec, Stdio stdio, int report) {
  Buffer arguments;
  Buffer environment;
  const Program p = decode(spec, arguments, environment);
  report_number(report, ChildReport::kHostPid, host_pid());
  if (p.oom_score != nullptr) write_small("/proc/self/oom_score_adj", p.oom_score);
  if (!join_cgroups(spec)) give_up(report);
  if (p.root != nullptr && !build_root(spec, p.root)) give_up(report);
  finish(p, stdio, report);
}

void run_exec(std::string_view spec, Stdio stdio, int report, int pidfd, bool join) {
  Buffer arguments;
  Buffer environment;
  const Program p = decode(spec, arguments, environment);
  if (!join_cgroups(spec)) give_up(report);
  if (join) {
    if (setns(pidfd, CLONE_NEWNS | CLONE_NEWPID) != 0) {
      failed("joining the container");
      give_up(report);
    }
  }
  // Only children join a PID namespace. This one becomes the shim's own child in our place. It
  // waits until the shim has been told of it, since its end must not come first.
  int told[2];
  if (pipe2(told, O_CLOEXEC) != 0) {
    failed("making a pipe");
    give_up(report);
  }
  const long child = syscall(SYS_clone, CLONE_PARENT | SIGCHLD, nullptr, nullptr, nullptr, nullptr);
  if (child < 0) {
    failed("starting a process in the container");
    give_up(report);
  }
  if (child > 0) {
    report_number(report, ChildReport::kHostPid, static_cast<int>(child));
    _exit(0);
  }
  close(told[1]);
  char nothing = 0;
  while (read(told[0], &nothing, 1) < 0 && errno == EINTR) {
  }
  finish(p, stdio, report);
}

}  // namespace grapnel::local::shim
