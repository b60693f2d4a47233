// grapnel operator: our controllers, on any cluster.
#include <unistd.h>

#include <algorithm>
#include <iostream>

#include "base/log.h"
#include "base/strings.h"
#include "cli/commands.h"
#include "cli/controllers/controllers.h"
#include "cli/loop.h"
#include "cli/manifest.h"
#include "http/certificates.h"
#include "kube/connect.h"
#include "runtime/manager.h"

namespace grapnel::cli {
namespace {

Result<ControllerOptions> parse_controllers(const OperatorOptions& options) {
  ControllerOptions out{.ns = options.ns, .jobset = false, .experiment = false};
  for (const auto name : split(options.controllers, ',')) {
    if (name == "jobset") {
      out.jobset = true;
    } else if (name == "experiment") {
      out.experiment = true;
    } else {
      return fail(Reason::kUsage, "--controllers: '{}' is none of jobset, experiment", name);
    }
  }
  return out;
}

Result<runtime::LeaseOptions> lease_of(const OperatorOptions& options, const std::string& ns) {
  char host[256] = "grapnel";
  ::gethostname(host, sizeof host - 1);
  const auto ending = http::random_token(8);
  if (!ending) return fail(ending.error());
  return runtime::LeaseOptions{
      .ns = options.leader_elect_namespace.empty() ? ns : options.leader_elect_namespace,
      .name = "grapnel",
      .identity = fmt::format("{}_{}", host, *ending)};
}

Task<int> serve(Executor executor, OperatorOptions options) {
  const auto controllers = parse_controllers(options);
  if (!controllers) co_return report(controllers.error(), kUsage);
  auto connection =
      kube::connect(executor, {.kubeconfig = options.kubeconfig, .context = options.context}, {});
  if (!connection) co_return report(connection.error(), kUsage);
  runtime::ManagerOptions manager_options;
  if (options.leader_elect) {
    auto lease = lease_of(options, connection->ns);
    if (!lease) co_return report(lease.error(), kFailed);
    manager_options.lease = std::move(*lease);
  }
  Random random(static_cast<uint64_t>(system_clock().now().time_since_epoch().count()) ^
                static_cast<uint64_t>(::getpid()));
  runtime::Manager manager(executor, *connection->client, system_clock(), random, manager_options);
  add_controllers(manager, *controllers);
  Interrupts interrupts(executor);
  auto stop = spawn(executor, [](Interrupts& i, runtime::Manager& m) -> Task<> {
    co_await i.next();
    m.stop();
  }(interrupts, manager));
  log_info("the operator starts", {{"controllers", options.controllers}});
  const auto ended = co_await manager.run();
  stop.cancel();
  co_await stop.join();
  co_return ended ? kOk : report(ended.error(), kFailed);
}

}  // namespace

int run_operator(const OperatorOptions& options) {
  return run_loop([&](Executor executor) { return serve(executor, options); });
}

}  // namespace grapnel::cli
