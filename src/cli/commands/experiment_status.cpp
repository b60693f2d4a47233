// grapnel status NAME: an experiment and all that was made for it, once or as it changes.
#include <unistd.h>

#include <algorithm>
#include <array>
#include <iostream>

#include "cli/commands.h"
#include "cli/experiment.h"
#include "cli/loop.h"
#include "cli/manifest.h"
#include "cli/output.h"
#include "cli/process.h"
#include "cli/screen.h"
#include "cli/target.h"
#include "cli/tree.h"
#include "kube/kind.h"
#include "operators/jobset/names.h"
#include "runtime/informer.h"

namespace grapnel::cli {
namespace {

namespace kinds = kube::kinds;

// Changes that come together are shown together.
constexpr milliseconds kPause{100};

kube::ListOptions jobs_of(const kube::Key& experiment) {
  return {.ns = experiment.ns.str(),
          .label_selector = fmt::format("{}={}", jobset::keys::kJobSetName, experiment.name)};
}

class StatusView {
 public:
  StatusView(Executor executor, kube::Client& client, kube::Key key)
      : executor_(executor),
        key_(std::move(key)),
        random_(1),
        experiments_(
            client, system_clock(), random_,
            {.kind = kinds::kExperiment,
             .filter = {.ns = key_.ns.str(), .field_selector = "metadata.name=" + key_.name}},
            [](JsonView object) { return api::decode_resource<api::Experiment>(object); }),
        jobs_(client, system_clock(), random_, {.kind = kinds::kJob, .filter = jobs_of(key_)},
              [](JsonView object) { return api::decode_job(object); }),
        pods_(client, system_clock(), random_, {.kind = kinds::kPod, .filter = pods_of(key_)},
              [](JsonView object) { return api::decode_pod(object, {.all_labels = true}); }),
        changed_(executor) {
    for (runtime::InformerBase* informer : all()) {
      informer->on_synced([this] { changed_.notify_all(); });
      informer->base_cache().on_advance([this] { changed_.notify_all(); });
    }
  }

  // Once, or until the experiment has ended.
  Task<int> run(bool watch) {
    std::vector<Spawned> running;
    for (runtime::InformerBase* informer : all()) {
      running.push_back(spawn(executor_, informer->run()));
    }
    const int code = co_await draw(watch);
    for (auto& task : running) task.cancel();
    for (auto& task : running) co_await task.join();
    co_return code;
  }

 private:
  std::array<runtime::InformerBase*, 3> all() { return {&experiments_, &jobs_, &pods_}; }

  Task<int> draw(bool watch) {
    Screen screen(stdout);
    for (;;) {
      while (!std::ranges::all_of(all(), [](const auto* i) { return i->synced(); })) {
        for (const auto* informer : all()) {
          if (informer->trouble()) co_return report(*informer->trouble(), kFailed);
        }
        co_await with_deadline(system_clock(), system_clock().instant() + seconds(1),
                               changed_.wait());
      }
      const auto experiment = experiments_.cache().get(key_);
      if (!experiment) co_return report(no_experiment(key_.name), kFailed);
      screen.show(picture(*experiment), watch ? terminal_size(STDOUT_FILENO) : std::nullopt);
      if (!watch || experiment->status.end_time) co_return kOk;
      // The clock in the picture moves, too.
      co_await with_deadline(system_clock(), system_clock().instant() + seconds(1),
                             changed_.wait());
      co_await system_clock().sleep_until(system_clock().instant() + kPause);
    }
  }

  std::string picture(const api::Experiment& experiment) {
    ExperimentTree tree{experiment, {}, {}};
    const auto jobs = jobs_.cache().all();
    const auto pods = pods_.cache().all();
    for (const auto& job : jobs) tree.jobs.push_back(job.get());
    for (const auto& pod : pods) tree.pods.push_back(pod.get());
    return render_tree(tree, system_clock().now());
  }

  Executor executor_;
  kube::Key key_;
  Random random_;
  runtime::Informer<api::Experiment> experiments_;
  runtime::Informer<api::Job> jobs_;
  runtime::Informer<api::Pod> pods_;
  Signal changed_;
};

Task<int> show(Executor executor, ExperimentOptions options) {
  auto to = connect_to(executor, options.target);
  if (!to) co_return report(to.error(), kUsage);
  if (is_document(options.output)) {
    const auto found =
        co_await get_experiment_object(*to->client, {Interned(to->ns), options.name});
    if (!found) co_return report(found.error(), kFailed);
    print_document(*found, options.output);
    co_return kOk;
  }
  if (options.output == Output::kName) {
    const auto found = co_await get_experiment(*to->client, {Interned(to->ns), options.name});
    if (!found) co_return report(found.error(), kFailed);
    std::cout << options.name << "\n";
    co_return kOk;
  }
  StatusView view(executor, *to->client, {Interned(to->ns), options.name});
  co_return co_await view.run(options.watch);
}

}  // namespace

int experiment_status(const ExperimentOptions& options) {
  return run_loop([&](Executor executor) { return show(executor, options); });
}

}  // namespace grapnel::cli
