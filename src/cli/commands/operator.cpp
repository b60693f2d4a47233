// grapnel operator: our controllers, on any cluster.
#include <unistd.h>

#include <algorithm>
#include <iostream>

#include "base/log.h"
#include "base/strings.h"
#include "cli/commands.h"
#include "cli/commands/operator_endpoints.h"
#include "cli/loop.h"
#include "cli/manifest.h"
#include "cli/webhook_server.h"
#include "controllers/controllers.h"
#include "http/certificates.h"
#include "kube/connect.h"
#include "runtime/manager.h"
#include "runtime/metrics.h"

namespace grapnel::cli {
namespace {

// The pod's name inside a cluster.
std::string host_name() {
  char host[256] = "grapnel";
  ::gethostname(host, sizeof host - 1);
  return host;
}

// Where the Lease and the webhooks' Secret are.
std::string own_namespace(const OperatorOptions& options, const std::string& ns) {
  return options.leader_elect_namespace.empty() ? ns : options.leader_elect_namespace;
}

Result<runtime::LeaseOptions> lease_of(const OperatorOptions& options, const std::string& ns) {
  const auto ending = http::random_token(8);
  if (!ending) return fail(ending.error());
  return runtime::LeaseOptions{.ns = own_namespace(options, ns),
                               .name = "grapnel",
                               .identity = fmt::format("{}_{}", host_name(), *ending)};
}

Result<EndpointAddresses> addresses_of(const OperatorOptions& options) {
  const auto metrics = parse_address(options.metrics_address);
  if (!metrics) return fail(Reason::kUsage, "--metrics-addr: {}", metrics.error().message);
  const auto health = parse_address(options.health_address);
  if (!health) return fail(Reason::kUsage, "--health-addr: {}", health.error().message);
  return EndpointAddresses{.metrics = *metrics, .health = *health};
}

Result<runtime::ManagerOptions> manager_options(const OperatorOptions& options,
                                                const std::string& ns, runtime::Metrics& metrics) {
  runtime::ManagerOptions out;
  out.events = runtime::EventOptions{.instance = host_name()};
  out.applier.on_count = [&metrics](const runtime::Count& count) { metrics.count(count); };
  if (options.leader_elect) {
    auto lease = lease_of(options, ns);
    if (!lease) return fail(lease.error());
    out.lease = std::move(*lease);
  }
  return out;
}

Task<int> serve(Executor executor, OperatorOptions options) {
  const auto kinds = controllers::parse_controllers(options.controllers);
  if (!kinds) co_return report(fail_in("--controllers", kinds.error()).value(), kUsage);
  const auto addresses = addresses_of(options);
  if (!addresses) co_return report(addresses.error(), kUsage);
  auto access = kube::find_access({.kubeconfig = options.kubeconfig, .context = options.context});
  if (!access) co_return report(access.error(), kUsage);
  runtime::Metrics metrics(access->server.substr(access->server.find("//") + 2));
  auto connection = kube::connect(
      executor, std::move(*access),
      {.protobuf = true, .observe = [&metrics](std::string_view method, int code, Duration took) {
         metrics.observe_request(method, code, took);
       }});
  if (!connection) co_return report(connection.error(), kUsage);
  auto how = manager_options(options, connection->ns, metrics);
  if (!how) co_return report(how.error(), kFailed);
  Random random(static_cast<uint64_t>(system_clock().now().time_since_epoch().count()) ^
                static_cast<uint64_t>(::getpid()));
  runtime::Manager manager(executor, *connection->client, system_clock(), random, std::move(*how));
  controllers::add_controllers(manager, {.ns = options.ns, .strict = options.strict}, *kinds);
  metrics.follow(manager);
  Endpoints endpoints(manager, metrics);
  if (const auto served = endpoints.start(executor, *addresses); !served) {
    co_return report(served.error(), kFailed);
  }
  const auto webhook_address = parse_address(options.webhook_address);
  if (!webhook_address) {
    co_return report(fail_in("--webhook-addr", webhook_address.error()).value(), kUsage);
  }
  std::optional<WebhookServer> webhooks;
  if (*webhook_address) {
    webhooks.emplace(executor, *connection->client, system_clock(),
                     WebhookServerOptions{.address = **webhook_address,
                                          .folder = options.webhook_certificates,
                                          .ns = own_namespace(options, connection->ns),
                                          .strict = options.strict});
  }
  auto serving = webhooks ? spawn(executor, webhooks->run()) : Spawned();
  Interrupts interrupts(executor);
  auto stop = spawn(executor, [](Interrupts& i, runtime::Manager& m) -> Task<> {
    co_await i.next();
    log_info("the operator stops");
    m.stop();
  }(interrupts, manager));
  auto settling = spawn(executor, give_back_after_start(system_clock()));
  log_info("the operator starts", {{"controllers", options.controllers}});
  const auto ended = co_await manager.run();
  for (Spawned* task : {&stop, &settling}) {
    task->cancel();
    co_await task->join();
  }
  if (webhooks) {
    serving.cancel();
    co_await serving.join();
    co_await webhooks->stop();
  }
  co_await endpoints.stop();
  co_return ended ? kOk : report(ended.error(), kFailed);
}

}  // namespace

int run_operator(const OperatorOptions& options) {
  return run_loop([&](Executor executor) { return serve(executor, options); });
}

}  // namespace grapnel::cli
