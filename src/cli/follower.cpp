#include "cli/follower.h"

#include "base/unless.h"
#include "cli/followed_log.h"

namespace grapnel::cli {
namespace {

// For processes that go on writing when the experiment has ended.
constexpr Duration kLogsToCome = seconds(5);
// Of those that have ended the whole log is there: only a server that is stuck sends nothing of it.
constexpr Duration kLongestSilence = seconds(30);
constexpr Duration kFirstPause = milliseconds(200);
constexpr Duration kLongestPause = seconds(5);

runtime::InformerOptions only_experiment(const kube::Key& key) {
  return {.kind = kube::kinds::kExperiment,
          .filter = {.ns = key.ns.str(), .field_selector = "metadata.name=" + key.name}};
}

// A server or a node that is restarted is there again in a while. Until it has found its processes
// it may say that there are none (400).
bool may_heal(const Error& error, bool worked_before) {
  return error.is_transient() || error.code >= 500 ||
         (worked_before && error.is(Reason::kBadRequest));
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
  pods_.cache().add_handler(
      [this](const api::Pod* before, const api::Pod* after) { on_pod(before, after); });
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

void Follower::on_pod(const api::Pod* before, const api::Pod* after) {
  if (after != nullptr && has_started(*after) && options_.filter.processes.takes(*after)) {
    read(*after, after->is_finished());
  } else if (after == nullptr) {
    const auto reader = readers_.find(before->meta.uid.text());
    if (reader == readers_.end()) return;
    reader->second.has_ended = true;
    changed_.notify_all();
  }
}

void Follower::read(const api::Pod& pod, bool has_ended) {
  const auto uid = pod.meta.uid.text();
  if (options_.printed.contains(uid)) return;
  const auto [found, is_new] = readers_.try_emplace(uid);
  Reader& reader = found->second;
  reader.has_ended = has_ended;
  changed_.notify_all();
  if (!is_new) return;
  reader.name = process_of(pod).name;
  reader.heard = clock_.instant();
  reader.task = spawn(executor_, print_logs(pod.meta.key, process_of(pod), reader));
}

// The end of a stream is not the end of a log: a node that restarts ends it, too. So a log is over
// only when it was opened after its process had ended.
Task<> Follower::print_logs(kube::Key pod, Process source, Reader& reader) {
  FollowedLog log(client_, {.ns = pod.ns.str(), .name = pod.name}, options_.logs);
  bool is_whole = false;
  Duration pause = kFirstPause;
  for (;;) {
    if (!log.is_open()) is_whole = reader.has_ended || options_.logs.previous;
    const auto line = co_await log.next();
    if (line && *line) {
      pause = kFirstPause;
      reader.heard = clock_.instant();
      if (options_.filter.takes_line(**line)) printer_.line(source.name, source.rank, **line);
      continue;
    }
    if (line && is_whole) co_return;
    if (!line && !may_heal(line.error(), log.was_open())) {
      // What there was of a pod that is gone has been read.
      if (line.error().is(Reason::kNotFound) && (log.was_open() || gone_)) co_return;
      printer_.note(
          log.was_open()
              ? fmt::format("the logs of {} broke off: {}", source.name, line.error().message)
              : fmt::format("no logs of {}: {}", source.name, line.error().message));
      co_return;
    }
    const Instant again = clock_.instant() + pause;
    pause = std::min(pause * 2, kLongestPause);
    while (clock_.instant() < again && (!line || !reader.has_ended)) {
      co_await with_deadline(clock_, again, changed_.wait());
    }
  }
}

// All that there is of its processes: the watch of the pods may be behind that of the experiment.
Task<> Follower::read_the_rest() {
  for (;;) {
    const auto found = co_await find_logged_processes(client_, key_, options_.filter.processes);
    if (found) {
      for (const auto& pod : found->gone) read(pod, true);
      for (const auto& pod : found->there) read(pod, pod.is_finished());
      co_return;
    }
    if (!may_heal(found.error(), true)) {
      printer_.note(fmt::format("its processes cannot be listed: {}", found.error().message));
      co_return;
    }
    co_await clock_.sleep(kFirstPause);
  }
}

Task<> Follower::finish_reading() {
  const Instant began = clock_.instant();
  for (auto& [uid, reader] : readers_) {
    while (!reader.task.done()) {
      const bool is_to_come = reader.has_ended && !gone_;
      const Instant deadline =
          is_to_come ? std::max(reader.heard, began) + kLongestSilence : began + kLogsToCome;
      if (clock_.instant() < deadline) {
        co_await with_deadline(clock_, deadline, reader.task.join());
        continue;
      }
      if (is_to_come) {
        printer_.note(fmt::format("the end of the logs of {} did not come", reader.name));
      }
      break;
    }
  }
}

Task<> Follower::follow() {
  while (!gone_ && !has_ended()) co_await changed_.wait();
  if (!gone_) co_await read_the_rest();
  co_await finish_reading();
}

Task<Result<std::optional<api::ExperimentStatus>>> Follower::run() {
  auto experiments = spawn(executor_, experiments_.run());
  auto pods = spawn(executor_, pods_.run());
  std::optional<Error> lost;
  const auto watch = [](Follower& self, std::optional<Error>& out) -> Task<> {
    out = co_await lost_contact(
        self.options_.cluster, self.clock_,
        [&self] {
          return self.experiments_.trouble() ? self.experiments_.trouble() : self.pods_.trouble();
        },
        [&self](std::string_view text) { self.printer_.note(text); });
  };
  const bool followed = co_await unless(watch(*this, lost), follow());
  for (auto& [uid, reader] : readers_) {
    reader.task.cancel();
    co_await reader.task.join();
  }
  experiments.cancel();
  pods.cancel();
  co_await experiments.join();
  co_await pods.join();
  if (!followed) co_return fail(*lost);
  co_return gone_ ? std::nullopt : last_;
}

}  // namespace grapnel::cli
