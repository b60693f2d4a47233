#include "local/node/shim/execs.h"

#include <errno.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "local/node/shim/container.h"
#include "local/node/shim/process.h"

namespace grapnel::local::shim {

void Execs::tell(int client, Message message, uint64_t id, int number, int fd) {
  if (client < 0) return;
  Buffer bytes;
  Writer writer(bytes);
  writer.message(message);
  writer.number(Field::kExecId, id);
  if (message == Message::kExecFailed) writer.text(Field::kError, failure());
  if (message == Message::kExecStarted) {
    writer.number(Field::kHostPid, static_cast<uint64_t>(number));
  }
  if (message == Message::kExecExited) {
    const int signal = WIFSIGNALED(number) ? WTERMSIG(number) : 0;
    const int code = signal != 0 ? 128 + signal : WEXITSTATUS(number);
    writer.number(Field::kExitCode, static_cast<uint64_t>(code));
    writer.number(Field::kExitSignal, static_cast<uint64_t>(signal));
  }
  send_packet(client, bytes.view(), &fd, fd >= 0 ? 1 : 0);
}

bool Execs::start(const Start& how, std::string_view spec) {
  int report[2];
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, report) != 0) {
    return failed("making a socket");
  }
  const pid_t pid = fork_with(0, nullptr);
  if (pid == 0) {
    Stdio stdio;
    if (how.fd_count > 0) stdio.in = how.fds[0];
    if (how.fd_count > 1) stdio.out = how.fds[1];
    if (how.fd_count > 2) stdio.error = how.fds[2];
    close(report[0]);
    run_exec(spec, stdio, report[1], how.pidfd, how.join);
  }
  const int error = errno;
  close(report[1]);
  if (pid < 0) {
    close(report[0]);
    errno = error;
    return failed("starting a process");
  }
  auto* exec = static_cast<Exec*>(calloc(1, sizeof(Exec)));
  if (exec == nullptr) _exit(70);
  *exec = {.id = how.id, .client = how.client, .report = report[0], .next = first_};
  first_ = exec;
  return true;
}

void Execs::read_report(Exec* exec) {
  char message[1100];
  int fds[kMostFds];
  size_t fd_count = 0;
  while (true) {
    const ssize_t size = receive_packet(exec->report, message, sizeof message - 1, fds, &fd_count);
    if (size < 0 && errno == EAGAIN) return;
    if (size <= 0) break;
    message[size] = '\0';
    switch (static_cast<ChildReport>(message[0])) {
      case ChildReport::kHostPid:
        memcpy(&exec->pid, message + 1, sizeof exec->pid);
        break;
      case ChildReport::kTerminal:
        exec->terminal = fd_count == 1 ? fds[0] : -1;
        break;
      case ChildReport::kFailure:
        free(exec->error);
        exec->error = copy_text(message + 1);
        break;
    }
  }
  close(exec->report);
  exec->report = -1;
  if (exec->error != nullptr || exec->pid <= 0) {
    refused("%s", exec->error != nullptr ? exec->error : "the command could not be started");
    tell(exec->client, Message::kExecFailed, exec->id, 0, -1);
    remove(exec);
    return;
  }
  tell(exec->client, Message::kExecStarted, exec->id, exec->pid, exec->terminal);
  if (exec->terminal >= 0) close(exec->terminal);
  exec->terminal = -1;
}

bool Execs::reaped(pid_t pid, int status) {
  // A command reports before it ends, so read its reports first: they may be all that we learn.
  for (Exec* e = first_; e != nullptr;) {
    Exec* next = e->next;
    if (e->report >= 0) read_report(e);
    e = next;
  }
  for (Exec* e = first_; e != nullptr; e = e->next) {
    if (e->pid != pid) continue;
    tell(e->client, Message::kExecExited, e->id, status, -1);
    remove(e);
    return true;
  }
  return false;
}

void Execs::signal(uint64_t id, int number) {
  for (const Exec* e = first_; e != nullptr; e = e->next) {
    if (e->id == id && e->pid > 0) kill(-e->pid, number);
  }
}

void Execs::forget_client(int client) {
  for (Exec* e = first_; e != nullptr; e = e->next) {
    if (e->client == client) e->client = -1;
  }
}

void Execs::remove(Exec* exec) {
  for (Exec** place = &first_; *place != nullptr; place = &(*place)->next) {
    if (*place != exec) continue;
    *place = exec->next;
    if (exec->report >= 0) close(exec->report);
    if (exec->terminal >= 0) close(exec->terminal);
    free(exec->error);
    free(exec);
    return;
  }
}

}  // namespace grapnel::local::shim
