#include "cli/follower.h"

#include "cli/line_reader.h"

namespace grapnel::cli {
namespace {

// Logs that are still on their way when the experiment has ended.
constexpr seconds kLogsToCome{5};

runtime::InformerOptions only_experiment(const kube::Key& key) {
  return {.kind = kube::kinds::kExperiment,
          .filter = {.ns = key.ns.str(), .field_selector = "metadata.name=" + key.name}};
}

}  // namespace

Follower::Follower(Executor executor, kube::Client& client, Clock& clock, kube::Key experiment,
                   FollowOptions options, LogPrinter& printer)
    : executor_(executor),
      client_(client),
      clock_(clock),
      key_(std::move(experiment)),
      options_(std::move(options)),
      printer_(printer),
      random_(static_cast<uint64_t>(clock.now().time_since_epoch().count())),
      experiments_(client, clock, random_, only_experiment(key_),
                   [](JsonView object) { return api::decode_resource<api::Experiment>(object); }),
      pods_(client, clock, random_, {.kind = kube::kinds::kPod, .filter = pods_of(key_)},
            [](JsonView object) { return api::decode_pod(object, {.all_labels = true}); }),
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
      if (text != said_) printer_.progress(text);
      said_ = text;
    }
  }
  changed_.notify_all();
}

void Follower::on_pod(const api::Pod* after) {
  if (after == nullptr || !has_started(*after) || !options_.filter.processes.takes(*after)) return;
  const auto [reader, is_new] = readers_.try_emplace(after->meta.uid.text());
  if (is_new) reader->second = spawn(executor_, print_logs(after->meta.key, process_of(*after)));
}

Task<> Follower::print_logs(kube::Key pod, Process source) {
  kube::LogOptions options = options_.logs;
  options.follow = true;
  auto stream = co_await client_.logs({.ns = pod.ns.str(), .name = pod.name}, options);
  if (!stream) {
    printer_.note(fmt::format("no logs of {}: {}", source.name, stream.error().message));
    co_return;
  }
  LineReader lines(std::move(*stream));
  for (;;) {
    const auto line = co_await lines.next();
    if (!line) {
      printer_.note(fmt::format("the logs of {} broke off: {}", source.name, line.error().message));
      co_return;
    }
    if (!*line) co_return;
    if (options_.filter.takes_line(**line)) printer_.line(source.name, source.rank, **line);
  }
}

Task<std::optional<api::ExperimentStatus>> Follower::run() {
  auto experiments = spawn(executor_, experiments_.run());
  auto pods = spawn(executor_, pods_.run());
  while (!gone_ && !(last_ && last_->end_time)) co_await changed_.wait();
  const Instant deadline = clock_.instant() + kLogsToCome;
  for (auto& [uid, reader] : readers_) {
    co_await with_deadline(clock_, deadline, reader.join());
  }
  for (auto& [uid, reader] : readers_) {
    reader.cancel();
    co_await reader.join();
  }
  experiments.cancel();
  pods.cancel();
  co_await experiments.join();
  co_await pods.join();
  co_return gone_ ? std::nullopt : last_;
}

}  // namespace grapnel::cli
