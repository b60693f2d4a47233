// grapnel open: a web page of an experiment, through a port of this machine.
#include <unistd.h>

#include <iostream>

#include "base/subprocess.h"
#include "base/unless.h"
#include "cli/commands.h"
#include "cli/experiment.h"
#include "cli/forwarder.h"
#include "cli/loop.h"
#include "cli/manifest.h"
#include "cli/page.h"
#include "cli/process.h"
#include "cli/target.h"

namespace grapnel::cli {
namespace {

Task<> run_forward(kube::PortForward& forward) {
  (void)co_await forward.run();
}

// Whether there is a browser, and whether it likes the page, is not ours to judge.
Task<> show_in_browser(std::string url) {
  (void)co_await run_program({.arguments = {"xdg-open", url}});
}

// Until it is interrupted, which ends it well, or the connection is lost: true.
Task<Result<bool>> serve(Executor executor, kube::PortForward& forward, Page page, uint16_t local) {
  Forwarder forwarder(executor, forward, [](std::string_view text) { std::cerr << text << "\n"; });
  auto port = forwarder.listen({.local = local == 0 ? page.port : local, .remote = page.port});
  if (!port && local == 0) port = forwarder.listen({.local = 0, .remote = page.port});
  if (!port) co_return fail(port.error());
  const std::string url = fmt::format("http://127.0.0.1:{}{}", *port, page.path);
  std::cout << url << std::endl;
  Spawned browser;
  if (::isatty(STDOUT_FILENO) == 1) {
    std::cerr << "press Ctrl-C to close it\n";
    browser = spawn(executor, show_in_browser(url));
  }
  Interrupts interrupts(executor);
  const bool lost = co_await unless(interrupts.next(), run_forward(forward));
  co_await forwarder.stop();
  browser.cancel();
  co_await browser.join();
  co_return lost;
}

Task<int> show(Executor executor, OpenOptions options) {
  auto to = connect_to(executor, options.target);
  if (!to) co_return report(to.error(), kUsage);
  const kube::Key key{Interned(to->ns), options.name};
  const auto experiment = co_await get_experiment(*to->client, key);
  if (!experiment) co_return report(experiment.error(), kFailed);
  const auto page = page_of(*experiment, options.what);
  if (!page) co_return report(page.error(), kFailed);
  const auto pod = co_await find_running_process(*to->client, key, {.role = page->role});
  if (!pod) co_return report(pod.error(), kFailed);
  auto socket = co_await to->client->port_forward({.ns = to->ns, .name = pod->meta.name()});
  if (!socket) co_return report(socket.error(), kFailed);
  kube::PortForward session(executor, std::move(*socket));
  const auto lost = co_await serve(executor, session, *page, options.port);
  if (!lost) co_return report(lost.error(), kFailed);
  if (!*lost) co_return kOk;
  co_return report(
      co_await why_cut(to->cluster, system_clock(), *to->client,
                       {.ns = to->ns, .name = pod->meta.name()}, process_of(*pod).name),
      kFailed);
}

}  // namespace

int open_page(const OpenOptions& options) {
  return run_loop([&](Executor executor) { return show(executor, options); });
}

}  // namespace grapnel::cli
