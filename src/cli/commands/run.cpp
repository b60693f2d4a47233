// grapnel run: a manifest on this machine, followed to its end.
#include <csignal>

#include "base/unless.h"
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

// How long a request may take that a person waits for with a finger on Ctrl-C.
constexpr Duration kShortly = seconds(5);
// SIGTERM comes from a program that waits for our end: it is not kept for as long as processes may
// take to end.
constexpr Duration kAfterTerminate = seconds(10);

using Status = std::optional<api::ExperimentStatus>;

// A first signal lets a request come to its end, a second one does not.
Task<> impatience(Interrupts& interrupts) {
  co_await interrupts.reached(1);
  co_await with_deadline(system_clock(), system_clock().instant() + kShortly,
                         interrupts.reached(2));
}

// The experiment of one `run`, from its submission to its end.
class Run {
 public:
  Run(Executor executor, kube::Client& client, Cluster cluster, kube::Key key)
      : interrupts_(executor),
        client_(client),
        cluster_(std::move(cluster)),
        key_(std::move(key)),
        printer_(LogPrinter::of_process()),
        follower_(executor, client, system_clock(), key_, {.cluster = cluster_}, printer_) {}

  Task<int> submit_and_follow(const experiment::Manifest& manifest) {
    Result<Json> created = fail(Reason::kCancelled, "");
    if (!co_await unless(impatience(interrupts_), submit(manifest, created))) {
      printer_.note(fmt::format("interrupted; `grapnel status {}` shows whether it was submitted",
                                key_.name));
      co_return kCancelled;
    }
    if (!created) co_return report(explained(created.error()), kFailed);
    Result<Status> last;
    co_await unless(leave_on_interrupt(), follow(last));
    if (leaves_with_) co_return *leaves_with_;
    if (!last) co_return report(last.error(), kFailed);
    if (!*last) {
      printer_.note(fmt::format("{} was deleted", key_.name));
      co_return kFailed;
    }
    const auto& status = **last;
    printer_.note(
        fmt::format("{}: {} ({})", key_.name, api::name_of(*status.phase), status.message));
    co_return exit_code(status);
  }

 private:
  Task<> submit(const experiment::Manifest& manifest, Result<Json>& created) {
    created = co_await submit_manifest(client_, manifest,
                                       {.name = key_.name, .ns = key_.ns.str(), .is_laptop = true});
  }

  Task<> follow(Result<Status>& last) { last = co_await follower_.run(); }

  // A signal asks to cancel; returns when nobody shall wait any longer for the end.
  Task<> leave_on_interrupt() {
    co_await interrupts_.reached(1);
    printer_.note(
        fmt::format("{}: cancelling; press Ctrl-C again not to wait for its end", key_.name));
    Result<Json> asked =
        fail(Reason::kTimeout, "no answer within {} s", duration_cast<seconds>(kShortly).count());
    co_await unless(impatience(interrupts_), cancel(asked));
    const bool is_over = !asked && asked.error().is(Reason::kNotFound);  // the follower says so
    if (interrupts_.count() < 2 && !asked && !is_over) {
      printer_.note(asked.error().is_transient()
                        ? (co_await no_answer(cluster_, system_clock(), asked.error())).message
                        : fmt::format("cannot cancel {}: {}", key_.name, asked.error().message));
      leaves_with_ = kFailed;
      co_return;
    }
    const auto patience = interrupts_.last() == SIGTERM ? kAfterTerminate : Duration(hours(1000));
    co_await with_deadline(system_clock(), system_clock().instant() + patience,
                           interrupts_.reached(2));
    printer_.note(
        fmt::format("not waiting for {0}; `grapnel status {0}` shows how it ends", key_.name));
    leaves_with_ = kCancelled;
  }

  Task<> cancel(Result<Json>& asked) {
    asked = co_await client_.patch(
        kube::kinds::kExperiment, {.ns = key_.ns.str(), .name = key_.name}, kube::PatchType::kMerge,
        JsonObject{{"spec", JsonObject{{"cancel", true}}}});
  }

  Interrupts interrupts_;
  kube::Client& client_;
  Cluster cluster_;
  kube::Key key_;
  LogPrinter printer_;
  Follower follower_;
  std::optional<int> leaves_with_;
};

Task<int> submit_and_follow(Executor executor, const ClusterPaths& paths, const RunOptions& options,
                            std::string name, const experiment::Manifest& manifest) {
  auto connection = kube::connect(executor, {.kubeconfig = paths.kubeconfig().string()}, {});
  if (!connection) co_return report(connection.error(), kFailed);
  const std::string& cluster = options.cluster.name;
  Run run(executor, *connection->client,
          {.laptop = cluster, .description = fmt::format("the laptop cluster '{}'", cluster)},
          {Interned(options.manifest.ns), std::move(name)});
  co_return co_await run.submit_and_follow(manifest);
}

}  // namespace

int run(const RunOptions& options) {
  const auto manifest = read_manifest(options.manifest.file);
  if (!manifest) return report(manifest.error(), kUsage);
  const auto name = experiment_name(*manifest, options.manifest);
  if (!name) return report(name.error(), kUsage);
  const auto paths = cluster_paths(options.cluster.name);
  if (!paths) return report(paths.error(), kUsage);
  if (const auto here = working_directory(); !here) return report(here.error(), kUsage);
  if (!running_pid(*paths)) {
    const auto started = start_in_background(*paths, options.cluster);
    if (!started) return report(started.error(), kFailed);
  }
  return run_loop([&](Executor executor) {
    return submit_and_follow(executor, *paths, options, *name, *manifest);
  });
}

}  // namespace grapnel::cli
