// grapnel status NAME: an experiment and all that was made for it, once or as it changes.
#include <unistd.h>

#include <algorithm>
#include <array>
#include <iostream>

#include "base/unless.h"
#include "cli/commands.h"
#include "cli/contact.h"
#include "cli/experiment.h"
#include "cli/loop.h"
#include "cli/manifest.h"
#include "cli/output.h"
#include "cli/process.h"
#include "cli/screen.h"
#include "cli/target.h"
#include "cli/tree.h"
#include "kube/kind.h"
#include "runtime/informer.h"

namespace grapnel::cli {
namespace {

namespace kinds = kube::kinds;

// Changes that come together are shown together.
constexpr milliseconds kPause{100};

class StatusView {
 public:
  StatusView(Executor executor, kube::Client& client, Cluster cluster, kube::Key key)
      : executor_(executor),
        cluster_(std::move(cluster)),
        key_(std::move(key)),
        random_(1),
        experiments_(
            client, system_clock(), random_,
            {.kind = kinds::kExperiment,
             .filter = {.ns = key_.ns.str(), .field_selector = "metadata.name=" + key_.name}},
            [](JsonView object) { return api::decode_resource<api::Experiment>(object); }),
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
    int code = kFailed;
    std::optional<Error> lost;
    if (!co_await unless(watch_contact(lost), draw(watch, code))) {
      code = report(*lost, kFailed);
    }
    for (auto& task : running) task.cancel();
    for (auto& task : running) co_await task.join();
    co_return code;
  }

 private:
  std::array<runtime::InformerBase*, 2> all() { return {&experiments_, &pods_}; }

  Task<> watch_contact(std::optional<Error>& lost) {
    const auto trouble = [this]() -> std::optional<Error> {
      for (const auto* informer : all()) {
        if (informer->trouble()) return informer->trouble();
      }
      return std::nullopt;
    };
    lost = co_await lost_contact(cluster_, system_clock(), trouble, [this](std::string_view text) {
      note_ = text;
      changed_.notify_all();
    });
  }

  Task<> draw(bool watch, int& code) { code = co_await draw(watch); }

  Task<int> draw(bool watch) {
    Screen screen(stdout);
    for (;;) {
      while (!std::ranges::all_of(all(), [](const auto* i) { return i->synced(); })) {
        for (const auto* informer : all()) {
          if (informer->trouble())
            co_return report(explained(*informer->trouble(), key_.name), kFailed);
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
    ExperimentTree tree{experiment, {}};
    const auto pods = pods_.cache().all();
    for (const auto& pod : pods) tree.pods.push_back(pod.get());
    return render_tree(tree, system_clock().now()) + (note_.empty() ? "" : note_ + "\n");
  }

  Executor executor_;
  Cluster cluster_;
  kube::Key key_;
  std::string note_;  // below the picture: about the cluster
  Random random_;
  runtime::Informer<api::Experiment> experiments_;
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
  StatusView view(executor, *to->client, to->cluster, {Interned(to->ns), options.name});
  co_return co_await view.run(options.watch);
}

}  // namespace

int experiment_status(const ExperimentOptions& options) {
  return run_loop([&](Executor executor) { return show(executor, options); });
}

}  // namespace grapnel::cli
