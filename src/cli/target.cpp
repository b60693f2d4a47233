#include "cli/target.h"

#include <cstdlib>
#include <filesystem>

#include "cli/paths.h"

namespace grapnel::cli {
namespace {

// The laptop cluster whose kubeconfig this is, or the one of $KUBECONFIG; "": none.
std::string laptop_of(std::string kubeconfig) {
  const char* set = std::getenv("KUBECONFIG");
  if (kubeconfig.empty() && set != nullptr) kubeconfig = set;
  const std::filesystem::path file(kubeconfig);
  const auto name = file.parent_path().filename().string();
  const auto paths = paths_of_cluster(name);
  return paths && paths->kubeconfig() == file ? name : "";
}

}  // namespace

Result<TargetChoice> choose_target(const Target& target) {
  if (!target.kubeconfig.empty() || !target.context.empty()) {
    return TargetChoice{.kubeconfig = target.kubeconfig,
                        .laptop = "",
                        .why = target.context.empty() ? "by --kubeconfig" : "by --context"};
  }
  const char* set = std::getenv("KUBECONFIG");
  if (target.cluster.empty() && set != nullptr && *set != '\0') {
    return TargetChoice{.kubeconfig = "", .laptop = "", .why = "by $KUBECONFIG"};
  }
  const std::string name = target.cluster.empty() ? "default" : target.cluster;
  const auto paths = cluster_paths(name);
  if (!paths) return fail(paths.error());
  if (running_pid(*paths)) {
    return TargetChoice{.kubeconfig = paths->kubeconfig().string(),
                        .laptop = name,
                        .why = target.cluster.empty() ? "it is up" : "by --cluster"};
  }
  if (target.cluster.empty()) {
    return TargetChoice{.kubeconfig = "", .laptop = "", .why = "no laptop cluster is up"};
  }
  return fail(Reason::kUsage, "cluster '{0}' is not up; start it with `grapnel up -d --name {0}`",
              target.cluster);
}

Result<TargetConnection> connect_to(Executor executor, const Target& target) {
  const auto choice = choose_target(target);
  if (!choice) return fail(choice.error());
  auto connection =
      kube::connect(executor, {.kubeconfig = choice->kubeconfig, .context = target.context}, {});
  if (!connection) {
    return fail(Reason::kUsage, "{}\nno laptop cluster is up either; `grapnel up -d` starts one",
                connection.error().message);
  }
  std::string description =
      !choice->laptop.empty() ? fmt::format("the laptop cluster '{}'", choice->laptop)
      : connection->context.empty()
          ? fmt::format("the cluster at {}", connection->client->options().server)
          : fmt::format("context {} ({})", connection->context,
                        connection->client->options().server);
  return TargetConnection{
      .client = std::move(connection->client),
      .ns = target.ns.empty() ? connection->ns : target.ns,
      .is_laptop = !choice->laptop.empty(),
      .cluster = {.laptop = choice->laptop.empty() ? laptop_of(choice->kubeconfig) : choice->laptop,
                  .description = std::move(description)}};
}

}  // namespace grapnel::cli
