// The part of a pod's worker that looks after running containers: hooks and probes.

#include "base/log.h"
#include "local/kubelet/pod_worker.h"

namespace grapnel::local::kubelet {
namespace {

// Does not keep the worker alive: a hook may outlast the pod.
Task<> stop_politely(PodRunner* runner, HandlerTarget target, Json container, Duration grace) {
  const std::string pod = target.pod;
  const std::string name = target.like.container;
  const Duration rest = co_await before_stop(std::move(target), std::move(container), grace);
  auto told = runner->stop_container(pod, name, {.grace = rest});
  if (!told) log_debug("a container could not be told to stop", {{"why", told.error().message}});
}

}  // namespace

void PodWorker::emit(bool is_warning, std::string_view reason, std::string message) const {
  if (context_.emit) context_.emit(pod_, is_warning, reason, std::move(message));
}

ExecSpec exec_beside(const ContainerSpec& container) {
  return {.container = container.name,
          .environment = container.environment,
          .directory = container.directory,
          .user = container.user,
          .group = container.group};
}

Task<Result<ExecSpec>> PodWorker::beside(std::string name) {
  const ContainerFacts* known = facts(name);
  if (known == nullptr || !known->now) co_return fail(Reason::kNotFound, "no container {}", name);
  if (!care_[name].like) {  // an earlier kubelet started it
    auto run = co_await prepare(name, known->now->attempt);
    if (!run) co_return fail(run.error());
    care_[name].like = exec_beside(run->spec);
  }
  co_return *care_[name].like;
}

Task<Result<HandlerTarget>> PodWorker::target_of(const std::string& container) {
  const Json* spec = spec_of(container);
  if (spec == nullptr) co_return fail(Reason::kNotFound, "no container {}", container);
  const Json copy = *spec;
  auto like = co_await beside(container);
  if (!like) co_return fail(like.error());
  co_return HandlerTarget{.executor = context_.executor,
                          .clock = context_.clock,
                          .runner = context_.runner,
                          .pod = pod_.uid(),
                          .address = observed_.address,
                          .like = std::move(*like),
                          .container = copy};
}

// Every running container that has probes or a hook is looked after; those that ended are not.
Task<> PodWorker::begin_care() {
  std::vector<std::string> names;
  for (const auto& [name, known] : observed_.containers) names.push_back(name);
  for (const std::string& name : names) {
    const ContainerFacts known = observed_.containers[name];
    Care& care = care_[name];
    const bool is_over = !known.is_running();
    const bool is_another = known.now && care.has_begun && care.attempt != known.now->attempt;
    if (care.has_begun && (is_over || is_another)) {
      for (Spawned& task : care.tasks) task.cancel();
      for (Spawned& task : care.tasks) co_await task.join();
      care.tasks.clear();
      care.has_begun = false;
    }
    const Json* spec = spec_of(name);
    if (is_over || care.has_begun || known.now->state != ContainerState::kRunning) continue;
    if (spec == nullptr || !needs_care(*spec)) continue;
    const Json copy = *spec;
    auto target = co_await target_of(name);
    if (!target) continue;
    care.has_begun = true;
    care.attempt = known.now->attempt;
    care.tasks.push_back(
        spawn(context_.executor, care_for({.target = std::move(*target),
                                           .container = copy,
                                           .started_at = known.now->started_at,
                                           .is_new = care.is_ours,
                                           .has_started = known.started,
                                           .tell = [worker = weak_from_this(), name,
                                                    attempt = care.attempt](CareReport report) {
                                             if (const auto held = worker.lock()) {
                                               held->take_report(name, attempt, std::move(report));
                                             }
                                           }})));
  }
}

void PodWorker::take_report(const std::string& name, uint64_t attempt, CareReport report) {
  ContainerFacts& known = observed_.containers[name];
  if (!known.is_running() || known.now->attempt != attempt) return;
  switch (report.kind) {
    case CareReport::Kind::kStarted:
      known.started = true;
      break;
    case CareReport::Kind::kReady:
      known.ready = true;
      break;
    case CareReport::Kind::kNotReady:
      known.ready = false;
      break;
    case CareReport::Kind::kUnhealthy:
      known.is_unhealthy = true;
      known.unhealthy_grace = report.grace;
      break;
  }
  if (!report.event.empty()) emit(true, report.event, report.why);
  wake();
}

Task<> PodWorker::stop_container(StopContainer stop) {
  observed_.containers[stop.name].told_to_stop = true;
  emit(false, "Killing", fmt::format("Stopping container {}", stop.name));
  const Json* spec = spec_of(stop.name);
  if (spec != nullptr && at(*spec, "lifecycle", "preStop") != nullptr) {
    const Json copy = *spec;
    if (auto target = co_await target_of(stop.name)) {
      care_[stop.name].tasks.push_back(spawn(
          context_.executor, stop_politely(context_.runner, std::move(*target), copy, stop.grace)));
      care_[stop.name].has_begun = true;
      care_[stop.name].attempt = observed_.containers[stop.name].now->attempt;
      co_return;
    }
  }
  auto told = context_.runner->stop_container(pod_.uid(), stop.name, {.grace = stop.grace});
  if (!told) {
    log_warning(
        "a container could not be told to stop",
        {{"pod", pod_.meta.key.text()}, {"container", stop.name}, {"why", told.error().message}});
  }
}

Task<> PodWorker::end_care() {
  for (auto& [name, care] : care_) {
    for (Spawned& task : care.tasks) task.cancel();
    for (Spawned& task : care.tasks) co_await task.join();
    care.tasks.clear();
  }
}

}  // namespace grapnel::local::kubelet
