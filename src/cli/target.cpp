#include "cli/target.h"

#include <cstdlib>

#include "cli/paths.h"

namespace grapnel::cli {
namespace {

struct Choice {
  std::string kubeconfig;  // "": wherever kubectl would look
  bool is_laptop = false;
};

Result<Choice> choose(const Target& target) {
  if (!target.kubeconfig.empty() || !target.context.empty()) return Choice{target.kubeconfig};
  const char* set = std::getenv("KUBECONFIG");
  if (target.cluster.empty() && set != nullptr && *set != '\0') return Choice{};
  const auto paths = cluster_paths(target.cluster.empty() ? "default" : target.cluster);
  if (!paths) return fail(paths.error());
  if (running_pid(*paths)) return Choice{paths->kubeconfig().string(), true};
  if (target.cluster.empty()) return Choice{};
  return fail(Reason::kUsage, "cluster '{0}' is not up; start it with `grapnel up -d --name {0}`",
              target.cluster);
}

}  // namespace

Result<TargetConnection> connect_to(Executor executor, const Target& target) {
  const auto choice = choose(target);
  if (!choice) return fail(choice.error());
  auto connection =
      kube::connect(executor, {.kubeconfig = choice->kubeconfig, .context = target.context}, {});
  if (!connection) {
    return fail(Reason::kUsage, "{}\nno laptop cluster is up either; `grapnel up -d` starts one",
                connection.error().message);
  }
  return TargetConnection{.client = std::move(connection->client),
                          .ns = target.ns.empty() ? connection->ns : target.ns,
                          .is_laptop = choice->is_laptop};
}

}  // namespace grapnel::cli
