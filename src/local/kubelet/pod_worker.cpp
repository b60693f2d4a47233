#include "local/kubelet/pod_worker.h"

#include <sys/stat.h>

#include <algorithm>
#include <utility>

#include "base/files.h"
#include "base/log.h"
#include "document/patch.h"
#include "local/kubelet/container_spec.h"
#include "local/kubelet/log_reader.h"
#include "local/kubelet/sources.h"
#include "local/kubelet/volumes.h"
#include "local/node/sandbox.h"

namespace grapnel::local::kubelet {
namespace {

constexpr std::string_view kCreating = "ContainerCreating";
constexpr Duration kRetryWrite = seconds(1);
constexpr Duration kLongestRetry = seconds(20);
constexpr size_t kLongestMessage = 4096;
constexpr Duration kRefresh = seconds(20);
constexpr Duration kForgiven = minutes(10);

}  // namespace

PodWorker::PodWorker(const WorkerContext& context, Pod pod, const PodStatus* found)
    : context_(context), pod_(std::move(pod)), news_(context.executor) {
  observed_.host_ip = context.node.address;
  observed_.containers = facts_of_status(pod_);
  observed_.address = string_or(find(pod_.status(), "podIP"));
  if (found == nullptr) {
    for (auto& [name, facts] : observed_.containers) {
      const bool is_lost = facts.now && facts.now->state == ContainerState::kLost;
      if (is_lost && context_.was_stopped) facts.now->error = "the cluster was stopped";
    }
    return;
  }
  observed_.has_sandbox = true;
  observed_.is_lost = found->is_lost;
  observed_.address = found->address;
  for (const auto& [name, status] : found->containers) take(status);
}

void PodWorker::wake() {
  has_news_ = true;
  news_.notify_all();
}

void PodWorker::update(Pod pod) {
  // The answer to our own write may be ahead of the watch.
  if (pod.meta.resource_version < pod_.meta.resource_version) return;
  pod_ = std::move(pod);
  wake();
}

void PodWorker::object_is_gone() {
  is_gone_ = true;
  wake();
}

void PodWorker::sandbox_is_lost() {
  observed_.is_lost = true;
  for (auto& [name, facts] : observed_.containers) {
    if (!facts.is_running()) continue;
    facts.now->state = ContainerState::kLost;
    facts.now->finished_at = now();
  }
  wake();
}

void PodWorker::take(const ContainerStatus& status) {
  ContainerFacts& facts = observed_.containers[status.name];
  if (facts.now && status.attempt < facts.now->attempt) return;
  if (facts.now && status.attempt > facts.now->attempt) {
    const bool is_forgiven = facts.now->finished_at - facts.now->started_at >= kForgiven;
    facts.restarts_in_a_row = is_forgiven ? 1 : facts.restarts_in_a_row + 1;
    facts.before = std::exchange(facts.now, std::nullopt);
    facts.message_before = std::exchange(facts.message, "");
    facts.told_to_stop = false;
  }
  const Json* spec = spec_of(status.name);
  const bool has_startup = spec != nullptr && find(*spec, "startupProbe") != nullptr;
  const bool has_readiness = spec != nullptr && find(*spec, "readinessProbe") != nullptr;
  // For an attempt that an earlier kubelet saw, the last results of its probes count until there
  // are new ones.
  facts.started = !has_startup || (facts.now && facts.started);
  facts.ready = !has_readiness || (facts.now && facts.ready);
  if (!facts.now) facts.is_unhealthy = false;
  facts.trouble.reset();
  facts.now = status;
  if (status.is_over()) facts.message = last_words(status);
  wake();
}

const Json* PodWorker::spec_of(std::string_view name) const {
  for (const Container& container : all_containers(pod_)) {
    if (container.name() == name) return container.spec;
  }
  return nullptr;
}

const ContainerFacts* PodWorker::facts(std::string_view container) const {
  const auto found = observed_.containers.find(container);
  return found == observed_.containers.end() ? nullptr : &found->second;
}

Task<> PodWorker::wait_for_news() {
  while (!has_news_) co_await news_.wait();
}

Task<> PodWorker::wait(std::optional<Time> until) {
  if (!until) {
    co_await wait_for_news();
    co_return;
  }
  const Duration rest = *until - now();
  if (rest <= Duration::zero()) co_return;
  co_await with_deadline(*context_.clock, context_.clock->instant() + rest, wait_for_news());
}

Task<> PodWorker::run() {
  while (!is_gone_) {
    has_news_ = false;
    observed_.pod = &pod_;
    co_await begin_care();
    Decision decision = decide(observed_, now());
    if (retry_write_ && *retry_write_ <= now()) retry_write_.reset();
    if (!decision.actions.empty()) {
      for (Action& action : decision.actions) co_await carry_out(std::move(action));
      // This may have changed the status, so decide again. Only a write that failed would come back
      // at once.
      if (!retry_write_) continue;
    } else if (!retry_write_) {
      co_await report(std::move(decision.status));
    }
    co_await refresh_files();
    std::optional<Time> until = decision.look_again;
    for (const auto& other : {retry_write_, refresh_at_}) {
      if (other) until = until ? std::min(*until, *other) : *other;
    }
    if (!has_news_) co_await wait(until);
  }
  co_await end_care();
  co_await remove_sandbox();
}

Task<> PodWorker::carry_out(Action action) {
  if (std::holds_alternative<StartSandbox>(action)) {
    co_await start_sandbox();
  } else if (auto* start = std::get_if<StartContainer>(&action)) {
    co_await start_container(std::move(*start));
  } else if (auto* stop = std::get_if<StopContainer>(&action)) {
    co_await stop_container(std::move(*stop));
  } else if (std::holds_alternative<RemoveSandbox>(action)) {
    co_await remove_sandbox();
  } else {
    co_await delete_pod();
  }
}

Trouble PodWorker::trouble(std::string reason, std::string message) {
  const Duration wait =
      std::min<Duration>(seconds(1LL << std::min(failures_++, 10U)), kLongestRetry);
  log_warning("a pod cannot be started",
              {{"pod", pod_.meta.key.text()}, {"reason", reason}, {"why", message}});
  emit(true, reason == kCreating ? "FailedMount" : "Failed", message);
  return {.reason = std::move(reason), .message = std::move(message), .retry_at = now() + wait};
}

Task<> PodWorker::start_sandbox() {
  const Pod pod = pod_;
  observed_.trouble.reset();
  auto sources =
      co_await fetch_sources(*context_.client, pod, !context_.node.api_authority_pem.empty());
  if (!sources) {
    observed_.trouble = trouble(std::string(kCreating), sources.error().message);
    co_return;
  }
  auto volumes = plan_volumes({.pod = &pod, .sources = &*sources, .node = &context_.node});
  if (!volumes) {
    observed_.trouble = trouble(std::string(kCreating), volumes.error().message);
    co_return;
  }
  auto started = co_await context_.runner->start(pod_to_run(pod, context_.node));
  if (!started) {
    observed_.trouble =
        trouble(std::string(kCreating), "Failed to create pod sandbox: " + started.error().message);
    co_return;
  }
  failures_ = 0;
  observed_.has_sandbox = true;
  observed_.is_lost = started->is_lost;
  observed_.address = started->address;
  // Before the first process starts: it may ask for its own name.
  if (context_.has_moved) context_.has_moved();
}

Task<> PodWorker::start_container(StartContainer start) {
  const std::string uid = pod_.uid();
  auto run = co_await prepare(start.name, start.attempt);
  if (!run) {
    const auto& causes = run.error().causes;
    observed_.containers[start.name].trouble = trouble(
        causes.empty() ? "CreateContainerError" : causes.front().reason, run.error().message);
    co_return;
  }
  Care& care = care_[start.name];
  care.like = exec_beside(run->spec);
  care.is_ours = true;
  auto started = co_await context_.runner->start_container(uid, std::move(run->spec));
  if (!started) {
    observed_.containers[start.name].trouble =
        trouble("RunContainerError", started.error().message);
    co_return;
  }
  failures_ = 0;
  if (started->state == ContainerState::kFailedToStart) {
    emit(true, "Failed", "Error: " + started->error);
  } else {
    emit(false, "Started", fmt::format("Container {} started", start.name));
  }
  take(*started);
}

Task<Result<ContainerToRun>> PodWorker::prepare(std::string name, uint64_t attempt) {
  const auto called = [](std::string_view reason, Error error) {
    error.causes = {{.reason = std::string(reason)}};
    return fail(std::move(error));
  };
  const Pod pod = pod_;
  const auto containers = all_containers(pod);
  const auto container =
      std::ranges::find_if(containers, [&](const Container& c) { return c.name() == name; });
  if (container == containers.end()) co_return fail(Reason::kNotFound, "no container {}", name);
  const std::string directory = context_.runner->pod_directory(pod.uid());
  auto sources =
      co_await fetch_sources(*context_.client, pod, !context_.node.api_authority_pem.empty());
  if (!sources) co_return called(kCreating, sources.error());
  auto volumes = plan_volumes({.pod = &pod,
                               .sources = &*sources,
                               .node = &context_.node,
                               .pod_address = observed_.address,
                               .pod_directory = directory});
  if (!volumes) co_return called(kCreating, volumes.error());
  if (auto made = make_volumes(*volumes); !made) co_return called(kCreating, made.error());
  const std::string logs = log_directory(context_.state_directory, pod, name);
  const std::string last_words = termination_log(name, attempt);
  auto run = container_to_run({.pod = &pod,
                               .container = *container,
                               .attempt = attempt,
                               .sources = &*sources,
                               .node = &context_.node,
                               .volumes = &*volumes,
                               .pod_address = observed_.address,
                               .services = context_.services ? context_.services(pod) : Variables(),
                               .log_path = log_path(logs, attempt),
                               .termination_log = last_words});
  if (!run) co_return called("CreateContainerConfigError", run.error());
  if (run->gpus > 0) {
    auto share = context_.gpus->take(pod.uid(), directory, name, run->gpus);
    if (!share) co_return called("UnexpectedAdmissionError", share.error());
    run->spec.devices = std::move(share->devices);
    std::ranges::move(share->environment, std::back_inserter(run->spec.environment));
  }
  run->directories.push_back(logs);
  if (!last_words.empty()) {
    run->directories.push_back(directory + "/last-words");
  }
  for (const std::string& path : run->directories) {
    if (auto made = make_directory(path, 0755); !made) {
      co_return called("CreateContainerError", made.error());
    }
  }
  struct stat known{};
  if (!last_words.empty() && stat(last_words.c_str(), &known) != 0) {
    auto written = write_file(last_words, "", 0666);
    if (!written) co_return called("CreateContainerError", written.error());
  }
  co_return run;
}

// ConfigMaps, Secrets and tokens may change while a pod runs; the mounted files follow after a
// while.
Task<> PodWorker::refresh_files() {
  const bool is_alive = observed_.has_sandbox && !observed_.is_lost && !pod_.is_finished();
  if (!is_alive || !has_live_files(pod_, context_.node)) {
    refresh_at_.reset();
    co_return;
  }
  const bool is_due = refresh_at_ && *refresh_at_ <= now();
  if (refresh_at_ && !is_due) co_return;
  refresh_at_ = now() + kRefresh;
  if (!is_due) co_return;
  const Pod pod = pod_;
  auto sources =
      co_await fetch_sources(*context_.client, pod, !context_.node.api_authority_pem.empty());
  if (!sources) co_return;
  auto volumes = plan_volumes({.pod = &pod,
                               .sources = &*sources,
                               .node = &context_.node,
                               .pod_address = observed_.address,
                               .pod_directory = context_.runner->pod_directory(pod.uid())});
  if (!volumes) co_return;
  std::erase_if(*volumes, [](const Volume& v) { return v.kind != Volume::Kind::kFiles; });
  if (auto made = make_volumes(*volumes); !made) {
    log_warning("a volume could not be brought up to date",
                {{"pod", pod.meta.key.text()}, {"why", made.error().message}});
  }
}

std::string PodWorker::termination_log(std::string_view container, uint64_t attempt) const {
  if (context_.runner->isolation() == Isolation::kNone) return "";
  return fmt::format("{}/last-words/{}-{}", context_.runner->pod_directory(pod_.uid()), container,
                     attempt);
}

std::string PodWorker::last_words(const ContainerStatus& status) const {
  const std::string path = termination_log(status.name, status.attempt);
  auto text = path.empty() ? Result<std::string>("") : read_file(path);
  if (!text) text = "";
  if (text->size() > kLongestMessage) text->erase(0, text->size() - kLongestMessage);
  const Json* spec = spec_of(status.name);
  const bool may_use_log = spec != nullptr && string_or(find(*spec, "terminationMessagePolicy")) ==
                                                  "FallbackToLogsOnError";
  if (!text->empty() || !may_use_log || status.exit_code == 0) return *text;
  return log_tail(
      log_path(log_directory(context_.state_directory, pod_, status.name), status.attempt), 80,
      2048);
}

Task<> PodWorker::remove_sandbox() {
  auto removed = co_await context_.runner->remove(pod_.uid());
  if (!removed) {
    log_warning("something of a pod stays behind",
                {{"pod", pod_.meta.key.text()}, {"why", removed.error().message}});
  }
  context_.gpus->give_back(pod_.uid());
  observed_.has_sandbox = false;
  observed_.is_lost = false;
}

void PodWorker::adopt(const Json& answer) {
  auto pod = decode_pod(answer);
  if (pod && pod->meta.uid == pod_.meta.uid) update(std::move(*pod));
}

Task<> PodWorker::report(Json status) {
  const auto change = merge_patch_between(pod_.status(), status);
  if (!change) co_return;
  Json body = JsonObject{{"metadata", JsonObject{{"uid", pod_.uid()}}}, {"status", *change}};
  auto written = co_await context_.client->patch(
      kube::kinds::kPod,
      {.ns = std::string(pod_.meta.ns()), .name = pod_.meta.name(), .subresource = "status"},
      kube::PatchType::kMerge, std::move(body));
  if (written) {
    adopt(*written);
    co_return;
  }
  retry_write_ = now() + kRetryWrite;
  if (written.error().is(Reason::kNotFound)) co_return;  // the watch will tell
  log_warning("a pod's status could not be written",
              {{"pod", pod_.meta.key.text()}, {"why", written.error().message}});
}

Task<> PodWorker::delete_pod() {
  auto removed = co_await context_.client->remove(
      kube::kinds::kPod, {.ns = std::string(pod_.meta.ns()), .name = pod_.meta.name()},
      {.uid = pod_.meta.uid, .grace_seconds = 0});
  // The watch will tell us that it is gone; until then decide() returns the same action.
  retry_write_ = now() + kRetryWrite;
  if (removed) adopt(*removed);
  if (removed || removed.error().is(Reason::kNotFound)) co_return;
  log_warning("a pod that has ended could not be deleted",
              {{"pod", pod_.meta.key.text()}, {"why", removed.error().message}});
}

}  // namespace grapnel::local::kubelet
