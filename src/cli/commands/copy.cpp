// grapnel cp: files into a process of an experiment and out of it, by `tar` on both sides. As `cp
// -r` does, a destination that is a folder gets the source inside, under its own name.
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <iostream>

#include "base/subprocess.h"
#include "cli/commands.h"
#include "cli/copy_path.h"
#include "cli/loop.h"
#include "cli/manifest.h"
#include "cli/process.h"
#include "cli/target.h"
#include "cli/terminal.h"
#include "kube/remote_command.h"

namespace grapnel::cli {
namespace {

namespace fs = std::filesystem;

// $1: the destination, $2: the source's name, $3: "folder", or the mode of a file.
constexpr std::string_view kTake = R"sh(set -e
case $1 in */) mkdir -p "$1";; esac
to=$1
if [ -d "$to" ] && [ -n "$2" ]; then to=${to%/}/$2; fi
if [ "$3" = folder ]; then
  mkdir -p "$to"
  exec tar -xof - -C "$to"
fi
mkdir -p "$(dirname "$to")"
tar -xOf - > "$to"
chmod "$3" "$to")sh";

// $1: the source. Says what it is, then sends it.
constexpr std::string_view kGive = R"sh(set -e
if [ -d "$1" ]; then
  echo folder
  exec tar -cf - -C "$1" .
fi
if [ ! -e "$1" ]; then
  echo "there is no file or folder $1" >&2
  exit 1
fi
echo file
exec tar -chf - -C "$(dirname "$1")" "./$(basename "$1")")sh";

std::vector<std::string> script(std::string_view text, std::vector<std::string> arguments) {
  std::vector<std::string> command{"/bin/sh", "-c", std::string(text), "grapnel-cp"};
  command.insert(command.end(), arguments.begin(), arguments.end());
  return command;
}

// A local path that begins with a dash is no option of tar.
std::string plain(const fs::path& path) {
  return path.is_absolute() ? path.string() : "./" + path.string();
}

Failure ended_with(int code) {
  return fail(Reason::kUnknown, "the copy in the process ended with code {}", code);
}

// What its tar says is passed on; when it has ended, how.
Task<Result<int>> drain(kube::RemoteCommand& remote) {
  for (;;) {
    const auto event = co_await remote.read();
    if (!event) co_return fail(event.error());
    if (event->exit_code) co_return *event->exit_code;
    (void)write_all(STDERR_FILENO, event->errors);
  }
}

// The other side has ended as soon as it has seen the archive's end: what comes after that it does
// not take, and how the program here ends is to be known all the same.
Task<> feed(kube::RemoteCommand& remote, PipedProgram& tar, int& code) {
  bool is_taken = true;
  for (;;) {
    const auto piece = co_await tar.read();
    if (!piece || piece->empty()) break;
    if (is_taken) is_taken = (co_await remote.write_input(*piece)).has_value();
  }
  code = co_await tar.wait();
  (void)co_await remote.close_input();
}

std::vector<std::string> packing(const fs::path& source, bool folder) {
  if (folder) return {"tar", "-cf", "-", "-C", plain(source), "."};
  const fs::path parent = source.parent_path();
  return {"tar",
          "-chf",
          "-",
          "-C",
          parent.empty() ? "." : plain(parent),
          "./" + source.filename().string()};
}

Task<Result<>> send(Executor executor, kube::Client& client, kube::Where pod, CopyRoute route) {
  struct stat what{};
  if (::stat(route.from.path.c_str(), &what) != 0) {
    co_return fail(Reason::kUsage, "there is no file or folder {}", route.from.path);
  }
  const bool folder = S_ISDIR(what.st_mode);
  auto socket = co_await client.exec(
      pod,
      {.command = script(kTake, {route.to.path, base_name(route.from.path),
                                 folder ? "folder" : fmt::format("{:o}", what.st_mode & 07777)}),
       .stdin_open = true});
  if (!socket) co_return fail(socket.error());
  kube::RemoteCommand remote(std::move(*socket));
  auto tar = PipedProgram::start(executor, packing(route.from.path, folder));
  if (!tar) co_return fail(tar.error());
  int packed = 0;
  auto feeding = spawn(executor, feed(remote, **tar, packed));
  const auto code = co_await drain(remote);
  if (!code || *code != 0) feeding.cancel();
  co_await feeding.join();
  if (!code) co_return fail(code.error());
  if (*code != 0) co_return ended_with(*code);
  if (packed != 0) co_return fail(Reason::kSystem, "not everything could be read");
  co_return Result<>();
}

// A file comes whole or not at all: it is unpacked beside its place and moved there.
class Unpacking {
 public:
  // `target` is a folder that gets the contents, or the file to be.
  static Result<Unpacking> into(const fs::path& target, bool folder) {
    Unpacking out;
    out.target_ = target;
    std::error_code error;
    if (folder) {
      fs::create_directories(target, error);
      if (error)
        return fail(Reason::kSystem, "cannot make {}: {}", target.string(), error.message());
      out.place_ = target;
      return out;
    }
    std::string name = (target.parent_path() / ".grapnel-cp-XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr) {
      return fail(Reason::kSystem, "cannot write in {}",
                  target.has_parent_path() ? target.parent_path().string() : ".");
    }
    out.place_ = out.temporary_ = name;
    return out;
  }
  Unpacking(Unpacking&& other) noexcept
      : target_(std::move(other.target_)),
        place_(std::move(other.place_)),
        temporary_(std::exchange(other.temporary_, {})) {}
  Unpacking& operator=(Unpacking&&) = delete;
  ~Unpacking() {
    std::error_code ignored;
    if (!temporary_.empty()) fs::remove_all(temporary_, ignored);
  }

  const fs::path& place() const { return place_; }
  Result<> finish(const std::string& name) const {
    if (temporary_.empty()) return {};
    std::error_code error;
    fs::rename(temporary_ / name, target_, error);
    if (error)
      return fail(Reason::kSystem, "cannot write {}: {}", target_.string(), error.message());
    return {};
  }

 private:
  Unpacking() = default;
  fs::path target_;
  fs::path place_;
  fs::path temporary_;  // empty: none
};

// What the first line of the remote side says; the rest of what came with it stays in `rest`.
struct Announced {
  bool folder = false;
  std::string rest;
};

Task<Result<Announced>> announcement(kube::RemoteCommand& remote) {
  std::string text;
  for (;;) {
    const auto event = co_await remote.read();
    if (!event) co_return fail(event.error());
    if (event->exit_code) co_return ended_with(*event->exit_code);
    (void)write_all(STDERR_FILENO, event->errors);
    text += event->output;
    if (const auto end = text.find('\n'); end != std::string::npos) {
      co_return Announced{.folder = text.substr(0, end) == "folder", .rest = text.substr(end + 1)};
    }
  }
}

Task<Result<int>> unpack(kube::RemoteCommand& remote, PipedProgram& tar, std::string first) {
  Result<> written = co_await tar.write(first);
  for (;;) {
    const auto event = co_await remote.read();
    if (!event) co_return fail(event.error());
    if (event->exit_code) {
      tar.finish_writing();
      co_return *event->exit_code;
    }
    (void)write_all(STDERR_FILENO, event->errors);
    if (written && !event->output.empty()) written = co_await tar.write(event->output);
    if (!written) co_return fail(Reason::kSystem, "the local tar has ended");
  }
}

Task<Result<>> fetch(Executor executor, kube::Client& client, kube::Where pod, CopyRoute route) {
  auto socket = co_await client.exec(pod, {.command = script(kGive, {route.from.path})});
  if (!socket) co_return fail(socket.error());
  kube::RemoteCommand remote(std::move(*socket));
  const auto announced = co_await announcement(remote);
  if (!announced) co_return fail(announced.error());

  const std::string name = base_name(route.from.path);
  fs::path target = route.to.path;
  std::error_code ignored;
  const bool is_there = fs::is_directory(target, ignored);
  if (!is_there && route.to.path.ends_with('/') && !announced->folder) {
    fs::create_directories(target, ignored);
    target /= name;
  } else if (is_there && !name.empty()) {
    target /= name;
  }
  auto unpacking = Unpacking::into(target, announced->folder);
  if (!unpacking) co_return fail(unpacking.error());
  auto tar = PipedProgram::start(executor, {"tar", "-xof", "-", "-C", plain(unpacking->place())});
  if (!tar) co_return fail(tar.error());
  const auto code = co_await unpack(remote, **tar, announced->rest);
  if (!code) co_return fail(code.error());
  const int unpacked = co_await (*tar)->wait();
  if (*code != 0) co_return ended_with(*code);
  if (unpacked != 0) co_return fail(Reason::kSystem, "not everything could be written");
  co_return unpacking->finish(name);
}

Task<int> run_copy(Executor executor, ProcessOptions options, CopyRoute route) {
  auto to = connect_to(executor, options.target);
  if (!to) co_return report(to.error(), kUsage);
  const auto pod = co_await find_running_process(*to->client, {Interned(to->ns), options.name},
                                                 {.role = options.role, .rank = options.rank});
  if (!pod) co_return report(pod.error(), kFailed);
  const kube::Where where{.ns = to->ns, .name = pod->meta.name()};
  const auto done = route.into_experiment()
                        ? co_await send(executor, *to->client, where, std::move(route))
                        : co_await fetch(executor, *to->client, where, std::move(route));
  co_return done ? kOk : report(done.error(), kFailed);
}

}  // namespace

int copy(CopyOptions options) {
  auto route = parse_copy_route(options.from, options.to);
  if (!route) return report(route.error(), kUsage);
  options.process.name = route->experiment();
  return run_loop([&](Executor executor) { return run_copy(executor, options.process, *route); });
}

}  // namespace grapnel::cli
