#include "cli/follower.h"

#include <charconv>

#include "operators/experiment/plan.h"

namespace grapnel::cli {
namespace {

// Logs that are still on their way when the experiment has ended.
constexpr seconds kLogsToCome{5};

runtime::InformerOptions only_experiment(const kube::Key& key) {
  return {.kind = kube::kinds::kExperiment,
          .filter = {.ns = key.ns.str(), .field_selector = "metadata.name=" + key.name}};
}

runtime::InformerOptions pods_of(const kube::Key& key) {
  return {
      .kind = kube::kinds::kPod,
      .filter = {.ns = key.ns.str(),
                 .label_selector = fmt::format("{}={}", experiment::kExperimentLabel, key.name)}};
}

bool has_started(const api::Pod& pod) {
  return pod.phase == api::Pod::Phase::kRunning || pod.is_finished();
}

}  // namespace

Follower::Follower(Executor executor, kube::Client& client, Clock& clock, kube::Key experiment,
                   LogPrinter& printer, LogPrinter& notes)
    : executor_(executor),
      client_(client),
      clock_(clock),
      key_(std::move(experiment)),
      printer_(printer),
      notes_(notes),
      random_(static_cast<uint64_t>(clock.now().time_since_epoch().count())),
      experiments_(client, clock, random_, only_experiment(key_),
                   [](JsonView object) { return api::decode_resource<api::Experiment>(object); }),
      pods_(client, clock, random_, pods_of(key_),
            [](JsonView object) { return api::decode_pod(object, {}); }),
      changed_(executor) {
  experiments_.cache().add_handler(
      [this](const api::Experiment*, const api::Experiment* after) { on_experiment(after); });
  pods_.cache().add_handler([this](const api::Pod*, const api::Pod* after) { on_pod(after); });
}

void Follower::on_experiment(const api::Experiment* after) {
  if (after == nullptr) {
    gone_ = true;
  } else {
    last_ = after->status;
    const auto& status = after->status;
    if (status.phase && !status.end_time) {
      const std::string text =
          fmt::format("{}: {} ({})", key_.name, api::name_of(*status.phase), status.message);
      if (text != said_) notes_.note(text);
      said_ = text;
    }
  }
  changed_.notify_all();
}

void Follower::on_pod(const api::Pod* after) {
  if (after == nullptr || !has_started(*after)) return;
  const auto [found, is_new] = sources_.try_emplace(after->meta.uid.text());
  if (!is_new) return;
  auto& source = found->second;
  const auto& labels = after->meta.labels;
  const auto rank = labels.get(experiment::kRankLabel);
  std::from_chars(rank.data(), rank.data() + rank.size(), source.rank);
  source.name = fmt::format("{}-{}", labels.get(experiment::kComponentLabel), rank);
  // Where a component has several Jobs, the Job's index tells them apart.
  if (const auto jobs = labels.get("jobset.sigs.k8s.io/replicatedjob-replicas");
      !jobs.empty() && jobs != "1") {
    source.name = fmt::format("{}-{}-{}", labels.get(experiment::kComponentLabel),
                              labels.get("jobset.sigs.k8s.io/job-index"), rank);
  }
  source.reader = spawn(executor_, print_logs(after->meta.key, source.name, source.rank));
}

Task<> Follower::print_logs(kube::Key pod, std::string name, int rank) {
  auto stream = co_await client_.logs({.ns = pod.ns.str(), .name = pod.name}, {.follow = true});
  if (!stream) {
    notes_.note(fmt::format("no logs of {}: {}", name, stream.error().message));
    co_return;
  }
  LineBuffer lines;
  const auto print = [&](std::string_view text) { printer_.line(name, rank, text); };
  while (true) {
    const auto piece = co_await (*stream)->read();
    if (!piece) {
      notes_.note(fmt::format("the logs of {} broke off: {}", name, piece.error().message));
      break;
    }
    if (piece->empty()) break;
    lines.add(*piece, print);
  }
  lines.finish(print);
}

Task<std::optional<api::ExperimentStatus>> Follower::run() {
  auto experiments = spawn(executor_, experiments_.run());
  auto pods = spawn(executor_, pods_.run());
  while (!gone_ && !(last_ && last_->end_time)) co_await changed_.wait();
  const Instant deadline = clock_.instant() + kLogsToCome;
  for (auto& [uid, source] : sources_) {
    co_await with_deadline(clock_, deadline, source.reader.join());
  }
  for (auto& [uid, source] : sources_) {
    source.reader.cancel();
    co_await source.reader.join();
  }
  experiments.cancel();
  pods.cancel();
  co_await experiments.join();
  co_await pods.join();
  co_return gone_ ? std::nullopt : last_;
}

}  // namespace grapnel::cli
