// grapnel run: a manifest on this machine, followed to its end.
#include <iostream>

#include "cli/background.h"
#include "cli/commands.h"
#include "cli/experiment.h"
#include "cli/follower.h"
#include "cli/loop.h"
#include "cli/manifest.h"
#include "cli/submission.h"
#include "kube/connect.h"

namespace grapnel::cli {
namespace {

int exit_code(const api::ExperimentStatus& status) {
  switch (status.phase.value_or(api::Phase::Failed)) {
    case api::Phase::Succeeded:
      return kOk;
    case api::Phase::Cancelled:
      return kCancelled;
    default:
      break;
  }
  const int64_t code = status.exit_code.value_or(kFailed);
  return code > 0 && code < 256 ? static_cast<int>(code) : kFailed;
}

// Ctrl-C asks to cancel; a second one does not wait until that is done.
Task<> cancel_on_interrupt(Interrupts& interrupts, kube::Client& client, kube::Key key,
                           LogPrinter& printer, Spawned& follow) {
  co_await interrupts.next();
  printer.note(fmt::format("{}: cancelling; press Ctrl-C again not to wait for its end", key.name));
  const auto asked = co_await client.patch(
      kube::kinds::kExperiment, {.ns = key.ns.str(), .name = key.name}, kube::PatchType::kMerge,
      JsonObject{{"spec", JsonObject{{"cancel", true}}}});
  if (!asked) printer.note(fmt::format("cannot cancel: {}", asked.error().message));
  co_await interrupts.next();
  follow.cancel();
}

Task<int> submit_and_follow(Executor executor, const ClusterPaths& paths, std::string name,
                            std::string ns, const experiment::Manifest& manifest) {
  Interrupts interrupts(executor);
  auto connection = kube::connect(executor, {.kubeconfig = paths.kubeconfig().string()}, {});
  if (!connection) co_return report(connection.error(), kFailed);
  auto& client = *connection->client;
  const auto created =
      co_await submit_manifest(client, manifest, {.name = name, .ns = ns, .is_laptop = true});
  if (!created) co_return report(explained(created.error()), kFailed);

  auto printer = LogPrinter::of_process();
  const kube::Key key{Interned(ns), name};
  Follower follower(executor, client, system_clock(), key, {}, printer);
  std::optional<api::ExperimentStatus> last;
  auto follow =
      spawn(executor, [](Follower& f, std::optional<api::ExperimentStatus>& out) -> Task<> {
        out = co_await f.run();
      }(follower, last));
  auto interrupt = spawn(executor, cancel_on_interrupt(interrupts, client, key, printer, follow));
  co_await follow.join();
  interrupt.cancel();
  co_await interrupt.join();
  if (interrupts.count() > 1) {
    printer.note(fmt::format("not waiting for {0}; `grapnel status {0}` shows how it ends", name));
    co_return kCancelled;
  }
  if (!last) {
    printer.note(fmt::format("{} was deleted", name));
    co_return kFailed;
  }
  printer.note(fmt::format("{}: {} ({})", name, api::name_of(*last->phase), last->message));
  co_return exit_code(*last);
}

}  // namespace

int run(const RunOptions& options) {
  const auto manifest = read_manifest(options.manifest.file);
  if (!manifest) return report(manifest.error(), kUsage);
  const auto name = experiment_name(*manifest, options.manifest);
  if (!name) return report(name.error(), kUsage);
  const auto paths = cluster_paths(options.cluster.name);
  if (!paths) return report(paths.error(), kUsage);
  if (!running_pid(*paths)) {
    const auto started = start_in_background(*paths, options.cluster);
    if (!started) return report(started.error(), kFailed);
  }
  return run_loop([&](Executor executor) {
    return submit_and_follow(executor, *paths, *name, options.manifest.ns, *manifest);
  });
}

}  // namespace grapnel::cli
