#include "base/subprocess.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <memory>
#include <optional>

#include "base/fd.h"

extern char** environ;

namespace grapnel {
namespace {

namespace asio = boost::asio;
using Descriptor = asio::posix::stream_descriptor;
using boost::system::error_code;

struct Pipe {
  Fd read;
  Fd write;
};

Result<Pipe> make_pipe() {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) {
    return fail(Reason::kSystem, "cannot make a pipe: {}", std::strerror(errno));
  }
  return Pipe{Fd(ends[0]), Fd(ends[1])};
}

// A started program. Destroying it before its end kills it.
class Child {
 public:
  Child(Executor executor, pid_t pid, bool own_group)
      : executor_(std::move(executor)), pid_(pid), own_group_(own_group) {}
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;
  ~Child() {
    if (pid_ == 0) return;
    kill();
    if (::waitpid(pid_, nullptr, WNOHANG) != 0) return;
    spawn(executor_, reap(pid_)).detach();
  }

  void kill() const {
    if (pid_ != 0) ::kill(own_group_ ? -pid_ : pid_, SIGKILL);
  }

  Task<int> wait() {
    const int status = co_await wait_for(pid_);
    pid_ = 0;
    co_return status;
  }

 private:
  static Task<> reap(pid_t pid) { co_await wait_for(pid); }

  static Task<int> wait_for(pid_t pid) {
    Fd watch(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
    std::optional<Descriptor> descriptor;
    if (watch) descriptor.emplace(co_await this_executor(), watch.release());
    for (;;) {
      int status = 0;
      const pid_t ended = ::waitpid(pid, &status, WNOHANG);
      if (ended == pid) co_return status;
      if (ended < 0 && errno != EINTR) co_return 0;  // someone else has reaped it
      if (descriptor) {
        co_await descriptor->async_wait(Descriptor::wait_read, asio::use_awaitable);
      } else {
        co_await system_clock().sleep(milliseconds(20));  // a kernel without pidfd_open
      }
    }
  }

  Executor executor_;
  pid_t pid_;
  bool own_group_;
};

// What posix_spawn wants as arrays of pointers; lives as long as the call.
class Strings {
 public:
  explicit Strings(std::vector<std::string> texts) : texts_(std::move(texts)) {
    for (std::string& text : texts_) pointers_.push_back(text.data());
    pointers_.push_back(nullptr);
  }
  char** data() { return pointers_.data(); }

 private:
  std::vector<std::string> texts_;
  std::vector<char*> pointers_;
};

std::vector<std::string> environment_with(
    const std::vector<std::pair<std::string, std::string>>& added) {
  std::vector<std::string> all;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    const std::string_view name = text.substr(0, text.find('='));
    bool replaced = false;
    for (const auto& [key, value] : added) replaced = replaced || key == name;
    if (!replaced) all.emplace_back(text);
  }
  for (const auto& [key, value] : added) all.push_back(key + "=" + value);
  return all;
}

struct Attributes {
  Attributes() {
    posix_spawnattr_init(&attributes);
    posix_spawn_file_actions_init(&actions);
  }
  ~Attributes() {
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&actions);
  }
  Attributes(const Attributes&) = delete;
  Attributes& operator=(const Attributes&) = delete;
  posix_spawnattr_t attributes;
  posix_spawn_file_actions_t actions;
};

struct Streams {
  Fd input;
  Pipe output;
  Pipe errors;
};

// A file in memory rather than a pipe: nobody has to write to a program that may not read.
Result<Fd> input_of(const std::string& text) {
  Fd file(::memfd_create("input", MFD_CLOEXEC));
  size_t written = 0;
  while (file && written < text.size()) {
    const ssize_t count = ::write(file.get(), text.data() + written, text.size() - written);
    if (count <= 0) break;
    written += static_cast<size_t>(count);
  }
  if (!file || written < text.size() || ::lseek(file.get(), 0, SEEK_SET) != 0) {
    return fail(Reason::kSystem, "cannot hold a program's input: {}", std::strerror(errno));
  }
  return file;
}

Result<Streams> open_streams(const Command& command) {
  Streams streams;
  auto output = make_pipe();
  if (!output) return fail(output.error());
  streams.output = std::move(*output);
  if (!command.share_errors) {
    auto errors = make_pipe();
    if (!errors) return fail(errors.error());
    streams.errors = std::move(*errors);
  }
  if (!command.share_input) {
    auto input = input_of(command.input);
    if (!input) return fail(input.error());
    streams.input = std::move(*input);
  }
  return streams;
}

struct Ends {
  int input = -1;  // each -1: our own
  int output = -1;
  int errors = -1;
};

Result<pid_t> start(const Command& command, const Ends& ends) {
  Attributes how;
  sigset_t none;
  sigset_t ignored;
  sigemptyset(&none);
  sigemptyset(&ignored);
  sigaddset(&ignored, SIGPIPE);  // we ignore it, and that would be inherited
  posix_spawnattr_setsigmask(&how.attributes, &none);
  posix_spawnattr_setsigdefault(&how.attributes, &ignored);
  short flags = POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF;
  // A program that reads from the terminal must stay in the group that owns it.
  if (!command.share_input) flags |= POSIX_SPAWN_SETPGROUP;
  posix_spawnattr_setflags(&how.attributes, flags);

  auto put = [&how](int fd, int target) {
    if (fd >= 0) posix_spawn_file_actions_adddup2(&how.actions, fd, target);
  };
  put(ends.input, STDIN_FILENO);
  put(ends.output, STDOUT_FILENO);
  put(ends.errors, STDERR_FILENO);

  Strings arguments(command.arguments);
  Strings environment(environment_with(command.environment));
  pid_t pid = 0;
  const int error = ::posix_spawnp(&pid, arguments.data()[0], &how.actions, &how.attributes,
                                   arguments.data(), environment.data());
  if (error != 0) {
    return fail(Reason::kSystem, "cannot run '{}': {}", command.arguments[0], std::strerror(error));
  }
  return pid;
}

// One stream of the program, and what has come of it.
struct Reading {
  explicit Reading(const Executor& executor) : pipe(executor) {}
  Descriptor pipe;
  std::string text;
  bool too_long = false;

  void assign(Fd& fd) {
    if (!fd) return;
    pipe.assign(fd.release());
    pipe.native_non_blocking(true);
  }
  void append(std::string_view piece, size_t limit) {
    too_long = too_long || text.size() + piece.size() > limit;
    if (!too_long) text += piece;
  }
};

// Everything about one run. Its Tasks share it: each may be the last to end.
struct Run {
  Run(const Executor& executor, Command command_in)
      : command(std::move(command_in)), output(executor), errors(executor) {}
  Command command;
  Reading output;
  Reading errors;
  std::unique_ptr<Child> child;
  int status = 0;
};

Task<> read_all(std::shared_ptr<Run> run, Reading Run::* member) {
  Reading& reading = *run.*member;
  std::array<char, 16384> buffer{};
  for (;;) {
    error_code error;
    const size_t count = co_await reading.pipe.async_read_some(
        asio::buffer(buffer), asio::redirect_error(asio::use_awaitable, error));
    if (error) co_return;
    reading.append({buffer.data(), count}, run->command.max_output);
    if (reading.too_long) {
      run->child->kill();
      co_return;
    }
  }
}

// Reads the rest of a pipe whose writer has ended. A child of the writer may hold it open forever.
void drain(Reading& reading, size_t limit) {
  std::array<char, 16384> buffer{};
  while (reading.pipe.is_open() && !reading.too_long) {
    const ssize_t count = ::read(reading.pipe.native_handle(), buffer.data(), buffer.size());
    if (count <= 0) return;
    reading.append({buffer.data(), static_cast<size_t>(count)}, limit);
  }
}

Task<> attend(std::shared_ptr<Run> run) {
  const Executor executor = co_await this_executor();
  Spawned output = spawn(executor, read_all(run, &Run::output));
  Spawned errors;
  if (run->errors.pipe.is_open()) errors = spawn(executor, read_all(run, &Run::errors));
  run->status = co_await run->child->wait();
  output.cancel();
  errors.cancel();
  co_await output.join();
  co_await errors.join();
  drain(run->output, run->command.max_output);
  drain(run->errors, run->command.max_output);
}

int exit_code_of(int status) {
  return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

}  // namespace

Task<Result<Finished>> run_program(Command command) {
  if (command.arguments.empty() || command.arguments[0].empty()) {
    co_return fail(Reason::kUsage, "no program to run");
  }
  const Executor executor = co_await this_executor();
  auto run = std::make_shared<Run>(executor, std::move(command));
  {
    auto streams = open_streams(run->command);
    if (!streams) co_return fail(streams.error());
    const auto pid = start(run->command, {.input = streams->input.get(),
                                          .output = streams->output.write.get(),
                                          .errors = streams->errors.write.get()});
    if (!pid) co_return fail(pid.error());
    run->child = std::make_unique<Child>(executor, *pid, !run->command.share_input);
    run->output.assign(streams->output.read);
    run->errors.assign(streams->errors.read);
  }
  Clock& clock = system_clock();
  const std::string& name = run->command.arguments[0];
  if (!co_await with_deadline(clock, clock.instant() + run->command.timeout, attend(run))) {
    co_return fail(Reason::kTimeout, "'{}' did not end within {} s", name,
                   duration_cast<seconds>(run->command.timeout).count());
  }
  if (run->output.too_long || run->errors.too_long) {
    co_return fail(Reason::kDecode, "'{}' printed more than {} bytes", name,
                   run->command.max_output);
  }
  co_return Finished{.exit_code = exit_code_of(run->status),
                     .output = std::move(run->output.text),
                     .errors = std::move(run->errors.text)};
}

// One socket is its input and its output: unlike a pipe, writing to one that has ended raises no
// signal.
struct PipedProgram::Impl {
  Impl(const Executor& executor, Fd ours, pid_t pid)
      : socket(executor, asio::local::stream_protocol(), ours.release()),
        child(executor, pid, true) {}
  asio::local::stream_protocol::socket socket;
  Child child;
};

PipedProgram::PipedProgram(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
PipedProgram::~PipedProgram() = default;

Result<std::unique_ptr<PipedProgram>> PipedProgram::start(Executor executor,
                                                          std::vector<std::string> arguments) {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) {
    return fail(Reason::kSystem, "cannot make a pair of sockets: {}", std::strerror(errno));
  }
  Fd ours(ends[0]);
  const Fd theirs(ends[1]);
  const auto pid = grapnel::start({.arguments = std::move(arguments)},
                                  {.input = theirs.get(), .output = theirs.get()});
  if (!pid) return fail(pid.error());
  return std::unique_ptr<PipedProgram>(
      new PipedProgram(std::make_unique<Impl>(executor, std::move(ours), *pid)));
}

Task<Result<std::string>> PipedProgram::read() {
  std::string piece(64UL << 10, '\0');
  error_code error;
  const size_t count = co_await impl_->socket.async_read_some(
      asio::buffer(piece), asio::redirect_error(asio::use_awaitable, error));
  if (error && error != asio::error::eof) co_return fail(Reason::kSystem, "{}", error.message());
  piece.resize(count);
  co_return piece;
}

Task<Result<>> PipedProgram::write(std::string_view data) {
  error_code error;
  co_await asio::async_write(impl_->socket, asio::buffer(data.data(), data.size()),
                             asio::redirect_error(asio::use_awaitable, error));
  if (error) co_return fail(Reason::kSystem, "{}", error.message());
  co_return Result<>();
}

void PipedProgram::finish_writing() {
  error_code ignored;
  impl_->socket.shutdown(asio::socket_base::shutdown_send, ignored);
}

Task<int> PipedProgram::wait() {
  co_return exit_code_of(co_await impl_->child.wait());
}

}  // namespace grapnel
