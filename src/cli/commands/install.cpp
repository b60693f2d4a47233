// grapnel install: what the operator needs in a cluster, printed or applied.
#include <iostream>

#include "cli/commands.h"
#include "cli/install_objects.h"
#include "cli/loop.h"
#include "cli/manifest.h"
#include "document/yaml.h"
#include "kube/connect.h"

namespace grapnel::cli {
namespace {

Task<int> apply(Executor executor, InstallOptions options) {
  const auto connection =
      kube::connect(executor, {.kubeconfig = options.kubeconfig, .context = options.context}, {});
  if (!connection) co_return report(connection.error(), kUsage);
  for (InstallObject& item : install_objects(options)) {
    const kube::Where where{.ns = std::string(string_or(at(item.object, "metadata", "namespace"))),
                            .name = std::string(string_or(at(item.object, "metadata", "name")))};
    const auto applied = co_await connection->client->patch(
        item.kind, where, kube::PatchType::kApply, std::move(item.object), {.force = true});
    if (!applied) {
      auto what = fmt::format("applying {} {}", item.kind.kind, where.name);
      if (applied.error().is(Reason::kNotFound) && !item.left_out_by.empty()) {
        what += fmt::format(" ({} leaves it out)", item.left_out_by);
      }
      co_return report(fail_in(what, applied.error()).value(), kFailed);
    }
    std::cout << item.kind.kind << " " << where.name << "\n";
  }
  co_return kOk;
}

}  // namespace

int install(const InstallOptions& options) {
  if (!options.print) {
    return run_loop([&](Executor executor) { return apply(executor, options); });
  }
  for (const InstallObject& item : install_objects(options)) {
    std::cout << "---\n" << to_yaml(item.object);
  }
  return kOk;
}

}  // namespace grapnel::cli
