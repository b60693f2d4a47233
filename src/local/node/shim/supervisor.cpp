#include "local/node/shim/supervisor.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include <new>

#include "local/node/shim/container.h"
#include "local/node/shim/execs.h"
#include "local/node/shim/util.h"

namespace grapnel::local::shim {
namespace {

constexpr int kMostClients = 8;

class Supervisor {
 public:
  explicit Supervisor(int listener) : listener_(listener) {}
  void run();

 private:
  struct Request {
    std::string_view bytes;
    int* fds;
    size_t fd_count;
  };
  void watch(int fd, short events = POLLIN);
  bool is_ready(int fd) const;
  int collect();
  void accept_client();
  void serve(int& client);
  void handle(int client, Message message, const Request& request);
  void attach(int client, const Request& request);
  void hello(int client);
  void start(int client, const Request& request);
  void start_exec(int client, const Request& request);
  void control(Message message, Reader reader);
  void turn_containers();
  void announce(const Container& container, Message message);
  void broadcast(const Buffer& message);
  void drop(int& client);
  void reap();
  void shut_down();
  Container* find(std::string_view name) const;
  Container* find_running(const Request& request, uint64_t& id) const;

  int listener_;
  int signals_ = -1;
  int clients_[kMostClients] = {-1, -1, -1, -1, -1, -1, -1, -1};
  Container* containers_ = nullptr;
  Execs execs_;
  bool ending_ = false;
  pollfd* polled_ = nullptr;
  size_t polled_count_ = 0;
  size_t polled_capacity_ = 0;
};

void Supervisor::watch(int fd, short events) {
  if (fd < 0) return;
  if (polled_count_ == polled_capacity_) {
    polled_capacity_ = polled_capacity_ == 0 ? 32 : polled_capacity_ * 2;
    polled_ = static_cast<pollfd*>(realloc(polled_, polled_capacity_ * sizeof *polled_));
    if (polled_ == nullptr) _exit(70);
  }
  polled_[polled_count_++] = {.fd = fd, .events = events, .revents = 0};
}

bool Supervisor::is_ready(int fd) const {
  for (size_t i = 0; i < polled_count_; ++i) {
    if (polled_[i].fd == fd) return polled_[i].revents != 0;
  }
  return false;
}

// Gathers what to wait for; the milliseconds to wait at most, or -1.
int Supervisor::collect() {
  polled_count_ = 0;
  watch(listener_);
  watch(signals_);
  for (const int client : clients_) watch(client);
  int64_t timeout = -1;
  for (Container* c = containers_; c != nullptr; c = c->next) {
    watch(c->report_fd());
    watch(c->output_fd(0));
    watch(c->output_fd(1));
    watch(c->terminal_fd());
    const int64_t left = c->enforce_deadline();
    if (left >= 0 && (timeout < 0 || left < timeout)) timeout = left;
  }
  for (const Exec* e = execs_.first(); e != nullptr; e = e->next) watch(e->report);
  return timeout < 0 ? -1 : static_cast<int>(timeout) + 1;
}

void Supervisor::accept_client() {
  const int fd = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
  if (fd < 0) return;
  for (int& client : clients_) {
    if (client < 0) {
      client = fd;
      return;
    }
  }
  close(fd);
}

void Supervisor::drop(int& client) {
  close(client);
  execs_.forget_client(client);
  client = -1;
}

void Supervisor::serve(int& client) {
  static char packet[kLargestMessage];
  int fds[kMostFds];
  size_t fd_count = 0;
  const ssize_t size = receive_packet(client, packet, sizeof packet, fds, &fd_count);
  if (size < 0 && errno == EAGAIN) return;
  if (size <= 0) {
    drop(client);
    return;
  }
  Reader reader({packet, static_cast<size_t>(size)});
  const Message message = reader.message();
  const std::string_view fields(packet + sizeof(uint16_t),
                                static_cast<size_t>(size) - sizeof(uint16_t));
  handle(client, message, {.bytes = fields, .fds = fds, .fd_count = fd_count});
  for (size_t i = 0; i < fd_count; ++i) {
    if (fds[i] >= 0) close(fds[i]);
  }
}

void Supervisor::handle(int client, Message message, const Request& request) {
  switch (message) {
    case Message::kHello:
      hello(client);
      break;
    case Message::kStart:
      start(client, request);
      break;
    case Message::kExec:
      start_exec(client, request);
      break;
    case Message::kAttach:
      attach(client, request);
      break;
    case Message::kShutdown:
      ending_ = true;
      break;
    default:
      control(message, Reader(request.bytes));
      break;
  }
}

void Supervisor::hello(int client) {
  for (const Container* c = containers_; c != nullptr; c = c->next) {
    Buffer message;
    c->describe(Message::kContainer, message);
    send_packet(client, message.view(), nullptr, 0);
  }
  Buffer end;
  Writer(end).message(Message::kHelloEnd);
  send_packet(client, end.view(), nullptr, 0);
}

Container* Supervisor::find(std::string_view name) const {
  for (Container* c = containers_; c != nullptr; c = c->next) {
    if (c->is_named(name)) return c;
  }
  return nullptr;
}

Message answer_for(const Container& c) {
  if (c.state() == State::kFailedToStart) return Message::kStartFailed;
  return c.state() == State::kExited ? Message::kExited : Message::kStarted;
}

void Supervisor::start(int client, const Request& request) {
  Reader reader(request.bytes);
  FieldValue value;
  std::string_view name;
  uint64_t attempt = 0;
  while (reader.next(value)) {
    if (value.field == Field::kContainer) name = value.text;
    if (value.field == Field::kAttempt) attempt = value.number();
  }
  Container* old = find(name);
  if (old != nullptr && (old->is(name, attempt) || !old->is_over())) {
    // Known, or its last attempt still runs: the state is the answer.
    if (old->state() == State::kStarting) return;
    Buffer message;
    old->describe(answer_for(*old), message);
    send_packet(client, message.view(), nullptr, 0);
    return;
  }
  Buffer spec;
  auto* made = static_cast<Container*>(malloc(sizeof(Container)));
  if (made == nullptr) _exit(70);
  new (made) Container(name, attempt);
  const bool read = request.fd_count >= 1 && read_all(request.fds[0], spec);
  if (!read || !made->start(spec.view(), listener_)) {
    if (!read) refused("the description of the container did not come along");
    Buffer message;
    Writer writer(message);
    writer.message(Message::kStartFailed);
    writer.text(Field::kContainer, name);
    writer.number(Field::kAttempt, attempt);
    writer.text(Field::kError, failure());
    broadcast(message);
    made->~Container();
    free(made);
    return;
  }
  for (Container** place = &containers_; *place != nullptr; place = &(*place)->next) {
    if (*place == old) {
      *place = old->next;
      old->~Container();
      free(old);
      break;
    }
  }
  made->next = containers_;
  containers_ = made;
}

// Nullptr: it does not run, which is noted. `id`: how the asker calls what it asks for.
Container* Supervisor::find_running(const Request& request, uint64_t& id) const {
  Reader reader(request.bytes);
  FieldValue value;
  std::string_view name;
  while (reader.next(value)) {
    if (value.field == Field::kContainer) name = value.text;
    if (value.field == Field::kExecId) id = value.number();
  }
  Container* container = find(name);
  if (container != nullptr && container->state() == State::kRunning) return container;
  refused("container %.*s is not running", static_cast<int>(name.size()), name.data());
  return nullptr;
}

void Supervisor::start_exec(int client, const Request& request) {
  uint64_t id = 0;
  Buffer spec;
  const Container* container = find_running(request, id);
  const bool has_spec = request.fd_count >= 1 && read_all(request.fds[0], spec);
  if (container != nullptr && !has_spec) {
    refused("the description of the command did not come along");
  } else if (container != nullptr && execs_.start({.client = client,
                                                   .id = id,
                                                   .pidfd = container->pidfd(),
                                                   .join = container->has_namespaces(),
                                                   .fds = request.fds + 1,
                                                   .fd_count = request.fd_count - 1},
                                                  spec.view())) {
    return;
  }
  Execs::tell(client, Message::kExecFailed, id, 0, -1);
}

void Supervisor::attach(int client, const Request& request) {
  uint64_t id = 0;
  Container* container = find_running(request, id);
  if (container != nullptr && container->attach(request.fds, request.fd_count)) {
    Execs::tell(client, Message::kExecStarted, id, container->pid(), container->input_fd());
    return;
  }
  Execs::tell(client, Message::kExecFailed, id, 0, -1);
}

void Supervisor::control(Message message, Reader reader) {
  FieldValue value;
  std::string_view name;
  uint64_t exec = 0;
  uint64_t grace = 0;
  int number = message == Message::kStop ? SIGTERM : 0;
  bool whole_group = false;
  winsize size{};
  while (reader.next(value)) {
    switch (value.field) {
      case Field::kContainer:
        name = value.text;
        break;
      case Field::kExecId:
        exec = value.number();
        break;
      case Field::kGrace:
        grace = value.number();
        break;
      case Field::kSignal:
        number = static_cast<int>(value.number());
        break;
      case Field::kWholeGroup:
        whole_group = value.number() != 0;
        break;
      case Field::kRows:
        size.ws_row = static_cast<unsigned short>(value.number());
        break;
      case Field::kColumns:
        size.ws_col = static_cast<unsigned short>(value.number());
        break;
      default:
        break;
    }
  }
  Container* container = find(name);
  if (message == Message::kSignal && exec != 0) {
    execs_.signal(exec, number);
  } else if (container == nullptr) {
    return;
  } else if (message == Message::kStop) {
    container->stop(number, whole_group, static_cast<int64_t>(grace));
  } else if (message == Message::kSignal) {
    container->signal(number, whole_group);
  } else if (message == Message::kCloseInput) {
    container->close_input();
  } else if (message == Message::kResize && container->terminal_fd() >= 0) {
    ioctl(container->terminal_fd(), TIOCSWINSZ, &size);
  }
}

void Supervisor::broadcast(const Buffer& message) {
  for (int& client : clients_) {
    // A client that does not read will connect again and ask for the state.
    if (client >= 0 && !send_packet(client, message.view(), nullptr, 0)) drop(client);
  }
}

void Supervisor::announce(const Container& container, Message message) {
  Buffer bytes;
  container.describe(message, bytes);
  broadcast(bytes);
}

void Supervisor::turn_containers() {
  for (Container* c = containers_; c != nullptr; c = c->next) {
    if (is_ready(c->report_fd())) {
      c->read_report();
      if (c->state() == State::kRunning && c->report_fd() < 0) announce(*c, Message::kStarted);
    }
    if (is_ready(c->output_fd(0)) || is_ready(c->output_fd(1)) || is_ready(c->terminal_fd())) {
      c->read_logs();
    }
  }
  for (Exec* e = execs_.first(); e != nullptr;) {
    Exec* next = e->next;
    if (is_ready(e->report)) execs_.read_report(e);
    e = next;
  }
}

void Supervisor::reap() {
  signalfd_siginfo info;
  while (read(signals_, &info, sizeof info) > 0) {
  }
  int status = 0;
  pid_t pid = 0;
  while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
    if (execs_.reaped(pid, status)) continue;
    for (Container* c = containers_; c != nullptr; c = c->next) {
      if (c->pid() != pid) continue;
      const bool was_starting = c->state() == State::kStarting;
      c->ended(status);
      if (was_starting && c->state() == State::kExited) announce(*c, Message::kStarted);
      announce(*c, answer_for(*c));
    }
  }
}

// Orphans become our children (launch.cpp), and theirs, too, as their parents die. Go on until
// there are none.
void kill_children() {
  for (int turn = 0; turn < 1000; ++turn) {
    DIR* all = opendir("/proc");
    if (all == nullptr) return;
    while (const dirent* entry = readdir(all)) {
      const int pid = atoi(entry->d_name);
      char path[64];
      char line[512];
      snprintf(path, sizeof path, "/proc/%d/stat", pid);
      if (pid <= 1 || read_small(path, line, sizeof line) <= 0) continue;
      const char* after_name = strrchr(line, ')');
      if (after_name != nullptr && atoi(after_name + 4) == getpid()) kill(pid, SIGKILL);
    }
    closedir(all);
    while (waitpid(-1, nullptr, WNOHANG) > 0) {
    }
    if (waitpid(-1, nullptr, WNOHANG) < 0) return;
    poll(nullptr, 0, 2);
  }
}

// With the first process of a PID namespace everything in it ends; without one, we look for them.
void Supervisor::shut_down() {
  for (Container* c = containers_; c != nullptr; c = c->next) {
    c->stop(SIGKILL, true, 0);
    c->enforce_deadline();
  }
  const int64_t deadline = monotonic_ms() + 5000;
  bool any = true;
  while (any && monotonic_ms() < deadline) {
    any = false;
    for (Container* c = containers_; c != nullptr; c = c->next) any = any || !c->is_over();
    reap();
    if (any) poll(nullptr, 0, 1);
  }
  if (getpid() != 1) kill_children();
}

void Supervisor::run() {
  sigset_t wanted;
  sigemptyset(&wanted);
  sigaddset(&wanted, SIGCHLD);
  sigprocmask(SIG_BLOCK, &wanted, nullptr);
  signals_ = signalfd(-1, &wanted, SFD_CLOEXEC | SFD_NONBLOCK);
  while (!ending_) {
    const int timeout = collect();
    if (poll(polled_, polled_count_, timeout) < 0) continue;
    turn_containers();
    if (is_ready(signals_)) reap();
    for (int& client : clients_) {
      if (client >= 0 && is_ready(client)) serve(client);
    }
    if (is_ready(listener_)) accept_client();
  }
  shut_down();
}

}  // namespace

void supervise(int listener) {
  Supervisor(listener).run();
}

}  // namespace grapnel::local::shim
