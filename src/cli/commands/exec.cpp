// grapnel exec: a command in a process of an experiment, with the terminal if asked.
#include <unistd.h>

#include <iostream>

#include "base/unless.h"
#include "cli/commands.h"
#include "cli/loop.h"
#include "cli/manifest.h"
#include "cli/process.h"
#include "cli/target.h"
#include "cli/terminal.h"
#include "kube/remote_command.h"

namespace grapnel::cli {
namespace {

Task<> pass_input(Executor executor, kube::RemoteCommand& command) {
  StandardInput input(executor);
  for (;;) {
    const auto piece = co_await input.read();
    if (!piece || piece->empty()) break;
    if (const auto sent = co_await command.write_input(*piece); !sent) co_return;
  }
  (void)co_await command.close_input();
}

Task<> pass_sizes(Executor executor, kube::RemoteCommand& command) {
  Resizes resizes(executor);
  for (;;) {
    if (const auto size = terminal_size(STDOUT_FILENO)) {
      if (const auto sent = co_await command.resize(size->width, size->height); !sent) co_return;
    }
    co_await resizes.next();
  }
}

Task<> pass_output(kube::RemoteCommand& command, Result<int>& code) {
  for (;;) {
    const auto event = co_await command.read();
    if (!event) {
      code = fail(event.error());
      co_return;
    }
    if (event->exit_code) {
      code = *event->exit_code;
      co_return;
    }
    const auto& [fd, text] = event->errors.empty()
                                 ? std::pair<int, const std::string&>(STDOUT_FILENO, event->output)
                                 : std::pair<int, const std::string&>(STDERR_FILENO, event->errors);
    if (auto written = write_all(fd, text); !written) {
      code = fail(written.error());
      co_return;
    }
  }
}

Task<Result<int>> attend(Executor executor, kube::RemoteCommand& command, bool input,
                         bool terminal) {
  std::optional<RawTerminal> raw;
  if (terminal) raw.emplace();
  std::vector<Spawned> passing;
  if (input) passing.push_back(spawn(executor, pass_input(executor, command)));
  if (terminal) passing.push_back(spawn(executor, pass_sizes(executor, command)));
  Result<int> code = kCancelled;
  Interrupts interrupts(executor);  // a terminal must not stay as the command had it
  co_await unless(interrupts.next(), pass_output(command, code));
  for (auto& task : passing) {
    task.cancel();
    co_await task.join();
  }
  co_return code;
}

Task<int> execute(Executor executor, ExecOptions options) {
  auto to = connect_to(executor, options.process.target);
  if (!to) co_return report(to.error(), kUsage);
  const auto& [target, name, role, rank] = options.process;
  const auto pod = co_await find_running_process(*to->client, {Interned(to->ns), name},
                                                 {.role = role, .rank = rank});
  if (!pod) co_return report(pod.error(), kFailed);
  auto socket = co_await to->client->exec(
      {.ns = to->ns, .name = pod->meta.name()},
      {.command = options.command, .stdin_open = options.input, .tty = options.terminal});
  if (!socket) co_return report(socket.error(), kFailed);
  kube::RemoteCommand command(std::move(*socket));
  const auto code = co_await attend(executor, command, options.input, options.terminal);
  // A laptop cluster that is stopped ends the command first.
  const bool was_stopped =
      !to->cluster.laptop.empty() && !look_at(to->cluster, system_clock()).serves;
  if (code && (!was_stopped || *code <= 128)) co_return *code;
  if (!code && !code.error().is(Reason::kTransport)) co_return report(code.error(), kFailed);
  co_return report(
      co_await why_cut(to->cluster, system_clock(), *to->client,
                       {.ns = to->ns, .name = pod->meta.name()}, process_of(*pod).name),
      kFailed);
}

}  // namespace

int exec(ExecOptions options) {
  const bool at_terminal = ::isatty(STDIN_FILENO) == 1;
  if (options.command.empty()) {
    options.command = {"/bin/sh"};
    options.input = true;
    options.terminal = at_terminal;
  }
  if (options.terminal && !at_terminal) {
    std::cerr << "standard input is not a terminal: -t is ignored\n";
    options.terminal = false;
  }
  return run_loop([&](Executor executor) { return execute(executor, options); });
}

}  // namespace grapnel::cli
