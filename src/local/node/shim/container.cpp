#include "local/node/shim/container.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "local/node/shim/process.h"

namespace grapnel::local::shim {
namespace {

void close_fd(int& fd) {
  if (fd >= 0) close(fd);
  fd = -1;
}

}  // namespace

pid_t fork_with(uint64_t flags, int* pidfd) {
  if (pidfd != nullptr) flags |= CLONE_PIDFD;
  return static_cast<pid_t>(syscall(SYS_clone, flags | SIGCHLD, nullptr, pidfd, nullptr, nullptr));
}

Container::Container(std::string_view name, uint64_t attempt)
    : name_(copy_text(name)),
      attempt_(attempt),
      streams_{LogStream(log_, "stdout"), LogStream(log_, "stderr")} {}

Container::~Container() {
  close_fd(report_);
  close_fd(output_[0]);
  close_fd(output_[1]);
  close_fd(terminal_);
  close_fd(stdin_);
  close_fd(pidfd_);
  free(name_);
  free(oom_file_);
  free(error_);
}

bool Container::is(std::string_view name, uint64_t attempt) const {
  return name == name_ && attempt == attempt_;
}

void Container::read_spec(std::string_view spec) {
  Reader reader(spec);
  FieldValue value;
  std::string_view log_path;
  uint64_t max_bytes = 0;
  uint64_t max_files = 0;
  while (reader.next(value)) {
    switch (value.field) {
      case Field::kLogPath:
        log_path = value.text;
        break;
      case Field::kLogMaxBytes:
        max_bytes = value.number();
        break;
      case Field::kLogMaxFiles:
        max_files = value.number();
        break;
      case Field::kOomFile:
        oom_file_ = copy_text(value.text);
        break;
      case Field::kTerminal:
        wants_terminal_ = value.number() != 0;
        break;
      case Field::kStdin:
        wants_stdin_ = value.number() != 0;
        break;
      case Field::kNewPids:
        own_pids_ = value.number() != 0;
        break;
      case Field::kRoot:
        has_root_ = true;
        break;
      default:
        break;
    }
  }
  log_.open(log_path, max_bytes, max_files);
}

bool Container::start(std::string_view spec, int control) {
  read_spec(spec);
  oom_before_ = oom_kills();
  int report[2];
  int out[2] = {-1, -1};
  int error[2] = {-1, -1};
  int in[2] = {-1, -1};
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, report) != 0) {
    return failed("making a socket");
  }
  if (!wants_terminal_ && (pipe2(out, O_CLOEXEC) != 0 || pipe2(error, O_CLOEXEC) != 0)) {
    return failed("making a pipe");
  }
  if (!wants_terminal_ && wants_stdin_ && pipe2(in, O_CLOEXEC) != 0) {
    return failed("making a pipe");
  }
  const uint64_t flags = (has_root_ ? CLONE_NEWNS : 0U) | (own_pids_ ? CLONE_NEWPID : 0U);
  pid_ = fork_with(flags, &pidfd_);
  if (pid_ == 0) {
    close(control);
    close(report[0]);
    run_container(spec, {.in = in[0], .out = out[1], .error = error[1]}, report[1]);
  }
  const int fork_error = errno;
  close(report[1]);
  close_fd(out[1]);
  close_fd(error[1]);
  close_fd(in[0]);
  report_ = report[0];
  output_[0] = out[0];
  output_[1] = error[0];
  stdin_ = in[1];
  if (stdin_ >= 0) fcntl(stdin_, F_SETFL, O_NONBLOCK);
  for (const int fd : output_) {
    if (fd >= 0) fcntl(fd, F_SETFL, O_NONBLOCK);
  }
  errno = fork_error;
  return pid_ > 0 || failed("starting a process");
}

void Container::read_report() {
  char message[1100];
  int fds[kMostFds];
  size_t fd_count = 0;
  while (report_ >= 0) {
    const ssize_t size = receive_packet(report_, message, sizeof message - 1, fds, &fd_count);
    if (size < 0 && errno == EAGAIN) return;
    if (size <= 0) {
      end_of_report();
      return;
    }
    message[size] = '\0';
    switch (static_cast<ChildReport>(message[0])) {
      case ChildReport::kHostPid:
        memcpy(&host_pid_, message + 1, sizeof host_pid_);
        break;
      case ChildReport::kTerminal:
        if (fd_count != 1) break;
        terminal_ = fds[0];
        fcntl(terminal_, F_SETFL, O_NONBLOCK);
        break;
      case ChildReport::kFailure:
        free(error_);
        error_ = copy_text(message + 1);
        break;
    }
  }
}

void Container::end_of_report() {
  close_fd(report_);
  if (state_ != State::kStarting) return;
  state_ = error_ != nullptr ? State::kFailedToStart : State::kRunning;
  started_at_ = now_ns();
}

// False when there is nothing more for now.
bool Container::read_output(int stream) {
  static char chunk[16 * 1024];
  int& fd = stream == 0 && terminal_ >= 0 ? terminal_ : output_[stream];
  if (fd < 0) return false;
  const ssize_t got = read(fd, chunk, sizeof chunk);
  if (got < 0 && (errno == EINTR || errno == EAGAIN)) return errno == EINTR;
  if (got <= 0) {  // a terminal ends with EIO
    streams_[stream].end();
    close_fd(fd);
    return false;
  }
  streams_[stream].add(chunk, static_cast<size_t>(got));
  copy_output(stream, chunk, static_cast<size_t>(got));
  return true;
}

bool Container::attach(const int* outputs, size_t count) {
  for (auto& slot : attached_) {
    if (slot[0] >= 0 || slot[1] >= 0) continue;
    for (size_t i = 0; i < 2 && i < count; ++i) {
      slot[i] = fcntl(outputs[i], F_DUPFD_CLOEXEC, 0);
      if (slot[i] >= 0) fcntl(slot[i], F_SETFL, O_NONBLOCK);
    }
    return true;
  }
  return refused("%s: too many are attached to it", name_);
}

void Container::copy_output(int stream, const char* data, size_t size) {
  for (auto& slot : attached_) {
    if (slot[stream] < 0) continue;
    // A reader that is too slow misses something: the container must not wait for it.
    if (write(slot[stream], data, size) < 0 && errno != EAGAIN) {
      close_fd(slot[0]);
      close_fd(slot[1]);
    }
  }
}

void Container::detach(int stream) {
  for (auto& slot : attached_) close_fd(slot[stream]);
}

void Container::read_logs() {
  for (int stream = 0; stream < 2; ++stream) {
    // A container that prints without end must not block everything else.
    for (int turn = 0; turn < 8 && read_output(stream); ++turn) {
    }
    log_.flush();
  }
}

void Container::signal(int number, bool whole_group) {
  if (pid_ <= 0 || is_over()) return;
  // The group exists once the process has made its session; the process itself comes first.
  if (!whole_group || kill(-pid_, number) != 0) kill(pid_, number);
}

void Container::stop(int number, bool whole_group, int64_t grace_ms) {
  if (is_over()) return;
  const int64_t deadline = monotonic_ms() + grace_ms;
  if (kill_at_ms_ < 0 || deadline < kill_at_ms_) kill_at_ms_ = deadline;
  if (grace_ms > 0) signal(number, whole_group);
}

int64_t Container::enforce_deadline() {
  if (kill_at_ms_ < 0 || is_over()) return -1;
  const int64_t left = kill_at_ms_ - monotonic_ms();
  if (left > 0) return left;
  signal(SIGKILL, !own_pids_);
  return 1000;
}

void Container::close_input() {
  close_fd(stdin_);
}

uint64_t Container::oom_kills() const {
  char text[1024];
  if (oom_file_ == nullptr || read_small(oom_file_, text, sizeof text) < 0) return 0;
  const char* line = strstr(text, "oom_kill ");
  return line != nullptr ? strtoull(line + 9, nullptr, 10) : 0;
}

// Without a PID namespace of its own, only we can end what the process left behind.
void Container::kill_session() const {
  kill(-pid_, SIGKILL);
  DIR* all = opendir("/proc");
  if (all == nullptr) return;
  while (const dirent* entry = readdir(all)) {
    const int pid = atoi(entry->d_name);
    if (pid > 1 && getsid(pid) == pid_) kill(pid, SIGKILL);
  }
  closedir(all);
}

void Container::ended(int status) {
  read_report();
  end_of_report();
  if (!own_pids_) kill_session();
  for (int stream = 0; stream < 2; ++stream) {
    while (read_output(stream)) {
    }
    streams_[stream].end();
    log_.flush();
    close_fd(output_[stream]);
    detach(stream);
  }
  close_fd(terminal_);
  close_fd(stdin_);
  close_fd(pidfd_);
  finished_at_ = now_ns();
  exit_signal_ = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
  exit_code_ = exit_signal_ != 0 ? 128 + exit_signal_ : WEXITSTATUS(status);
  out_of_memory_ = oom_kills() > oom_before_;
  if (state_ != State::kFailedToStart) state_ = State::kExited;
  pid_ = -1;
  record();
}

void Container::describe(Message message, Buffer& into) const {
  Writer writer(into);
  writer.message(message);
  writer.text(Field::kContainer, name_);
  writer.number(Field::kAttempt, attempt_);
  writer.number(Field::kState, static_cast<uint64_t>(state_));
  writer.number(Field::kHostPid, static_cast<uint64_t>(host_pid_));
  writer.number(Field::kStartedAt, static_cast<uint64_t>(started_at_));
  if (error_ != nullptr) writer.text(Field::kError, error_);
  if (!is_over()) return;
  writer.number(Field::kFinishedAt, static_cast<uint64_t>(finished_at_));
  writer.number(Field::kExitCode, static_cast<uint64_t>(exit_code_));
  writer.number(Field::kExitSignal, static_cast<uint64_t>(exit_signal_));
  writer.number(Field::kOutOfMemory, out_of_memory_ ? 1 : 0);
}

// On disk before it is reported: a kubelet that asks after a crash must find what others already
// know.
void Container::record() const {
  Buffer bytes;
  describe(Message::kExited, bytes);
  char path[512];
  char temporary[520];
  snprintf(path, sizeof path, "exit-%s-%lu", name_, static_cast<unsigned long>(attempt_));
  snprintf(temporary, sizeof temporary, "%s.new", path);
  const int fd = open(temporary, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  if (fd < 0) return;
  const bool written = write_all(fd, bytes.data(), bytes.size()) && fsync(fd) == 0;
  close(fd);
  if (!written || rename(temporary, path) != 0) return;
  const int directory = open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (directory < 0) return;
  fsync(directory);
  close(directory);
}

}  // namespace grapnel::local::shim
