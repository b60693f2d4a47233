// grapnel port-forward: ports of this machine that lead into a process of an experiment.
#include <iostream>

#include "base/unless.h"
#include "cli/commands.h"
#include "cli/forwarder.h"
#include "cli/loop.h"
#include "cli/manifest.h"
#include "cli/process.h"
#include "cli/target.h"

namespace grapnel::cli {
namespace {

Task<> run_forward(kube::PortForward& forward) {
  (void)co_await forward.run();
}

// Until it is interrupted, which ends it well, or the connection is lost: true.
Task<Result<bool>> serve(Executor executor, kube::PortForward& forward, std::vector<PortPair> ports,
                         std::string process) {
  Forwarder forwarder(executor, forward, [](std::string_view text) { std::cerr << text << "\n"; });
  for (const auto& pair : ports) {
    const auto local = forwarder.listen(pair);
    if (!local) co_return fail(local.error());
    std::cout << fmt::format("127.0.0.1:{} leads to port {} of {}\n", *local, pair.remote, process)
              << std::flush;
  }
  Interrupts interrupts(executor);
  const bool lost = co_await unless(interrupts.next(), run_forward(forward));
  co_await forwarder.stop();
  co_return lost;
}

Task<int> forward(Executor executor, ProcessOptions options, std::vector<PortPair> ports) {
  auto to = connect_to(executor, options.target);
  if (!to) co_return report(to.error(), kUsage);
  const auto pod = co_await find_running_process(*to->client, {Interned(to->ns), options.name},
                                                 {.role = options.role, .rank = options.rank});
  if (!pod) co_return report(pod.error(), kFailed);
  auto socket = co_await to->client->port_forward({.ns = to->ns, .name = pod->meta.name()});
  if (!socket) co_return report(socket.error(), kFailed);
  kube::PortForward session(executor, std::move(*socket));
  const std::string process = process_of(*pod).name;
  const auto lost = co_await serve(executor, session, std::move(ports), process);
  if (!lost) co_return report(lost.error(), kFailed);
  if (!*lost) co_return kOk;
  co_return report(co_await why_cut(to->cluster, system_clock(), *to->client,
                                    {.ns = to->ns, .name = pod->meta.name()}, process),
                   kFailed);
}

}  // namespace

int port_forward(const ProcessOptions& options, const std::vector<std::string>& texts) {
  std::vector<PortPair> ports;
  for (const auto& text : texts) {
    const auto pair = parse_port_pair(text);
    if (!pair) return report(pair.error(), kUsage);
    ports.push_back(*pair);
  }
  return run_loop([&](Executor executor) { return forward(executor, options, ports); });
}

}  // namespace grapnel::cli
