#include "operators/experiment/progress.h"

#include <algorithm>

#include "operators/experiment/process.h"

namespace grapnel::experiment {
namespace {

using api::Phase;
using api::Pod;

int64_t pods_of(api::Operator op, const api::Component& component) {
  return op == api::Operator::jobset ? component.count * component.completions.value_or(1)
                                     : component.count;
}

// "worker 1"
std::string name_of(const Pod& pod) {
  const ProcessId id = process_id(pod.meta);
  if (id.component.empty()) return pod.meta.name();
  return fmt::format("{} {}", id.component, id.number);
}

// Why a pod does not run: the scheduler's word, or that of a container which cannot start.
std::string why_waiting(const Pod& pod) {
  if (const auto* scheduled = pod.condition("PodScheduled");
      scheduled != nullptr && !scheduled->is_true && !scheduled->message.empty()) {
    return scheduled->message;
  }
  for (const auto& container : pod.containers) {
    if (container.state != api::ContainerStatus::State::kWaiting || container.reason.empty()) {
      continue;
    }
    return container.message.empty()
               ? std::string(container.reason)
               : fmt::format("{}: {}", container.reason.view(), container.message);
  }
  return "";
}

bool created_a_pod_since(const Observed& o, const api::Event& refusal) {
  return std::ranges::any_of(o.pods, [&](const Pod* pod) {
    const auto* owner = pod->meta.controller();
    return owner != nullptr && owner->uid == refusal.about_uid && pod->meta.created > refusal.last;
  });
}

// Why pods were not even created, by the newest word of a Job that should: a quota, mostly.
std::string why_missing(const Observed& o) {
  const api::Event* newest = nullptr;
  for (const auto* refusal : o.refusals) {
    if (newest != nullptr && refusal->last <= newest->last) continue;
    if (!created_a_pod_since(o, *refusal)) newest = refusal;
  }
  if (newest == nullptr) return "";
  // Of 'Error creating: pods "a-b" is forbidden: exceeded quota …' the end tells something.
  std::string_view why = newest->note;
  for (const std::string_view needless : {"Error creating: ", " is forbidden: "}) {
    if (const size_t at = why.find(needless); at != why.npos)
      why.remove_prefix(at + needless.size());
  }
  return fmt::format("pods are refused: {}", why);
}

const api::ContainerStatus* failed_container(const Pod& pod) {
  const auto found = std::ranges::find_if(pod.containers, [](const api::ContainerStatus& c) {
    return c.state == api::ContainerStatus::State::kTerminated && c.exit_code != 0;
  });
  return found == pod.containers.end() ? nullptr : &*found;
}

// The pod whose failure ended the experiment. Those that are being deleted were stopped because of
// it.
const Pod* first_failed(const std::vector<const Pod*>& pods) {
  const Pod* found = nullptr;
  for (const auto* pod : pods) {
    if (pod->phase != Pod::Phase::kFailed || failed_container(*pod) == nullptr) continue;
    if (!pod->meta.is_being_deleted()) return pod;
    if (found == nullptr) found = pod;
  }
  return found;
}

}  // namespace

std::vector<api::ComponentStatus> statuses_of(const Components& components, const Observed& o) {
  std::vector<api::ComponentStatus> statuses;
  for (const auto& [name, component] : components.named) {
    api::ComponentStatus status{.name = name, .desired = pods_of(o.experiment.spec.op, component)};
    for (const auto* pod : o.pods) {
      if (pod->meta.labels.get(kComponentLabel) != name) continue;
      if (pod->phase == Pod::Phase::kSucceeded) ++status.succeeded;
      if (pod->phase == Pod::Phase::kFailed) ++status.failed;
      if (pod->phase == Pod::Phase::kRunning && pod->ready) ++status.ready;
    }
    statuses.push_back(std::move(status));
  }
  return statuses;
}

Outcome progress_of(const Observed& o, const std::vector<api::ComponentStatus>& components) {
  int64_t desired = 0;
  int64_t up = 0;  // running, or done already
  for (const auto& component : components) {
    desired += component.desired;
    up += component.ready + component.succeeded;
  }
  const std::string count = fmt::format("{} of {} processes are up", up, desired);
  if (up >= desired) return {Phase::Running, "Running", count};
  const Phase phase = up > 0 ? Phase::Starting : Phase::Pending;
  for (const auto* pod : o.pods) {
    if (pod->is_finished() || pod->ready) continue;
    if (const auto why = why_waiting(*pod); !why.empty()) {
      return {phase, "Waiting", fmt::format("{}; {} waits: {}", count, name_of(*pod), why)};
    }
  }
  if (o.child->is_suspended) return {Phase::Pending, "Suspended", "waiting to be admitted"};
  if (std::ssize(o.pods) < desired) {
    if (const auto why = why_missing(o); !why.empty()) {
      return {phase, "Refused", fmt::format("{}; {}", count, why)};
    }
  }
  return {o.pods.empty() ? Phase::Pending : Phase::Starting, "Starting", count};
}

Outcome outcome_of(const ChildState::End& end, const Observed& o) {
  using How = ChildState::End::How;
  if (end.how == How::kSucceeded) {
    return {Phase::Succeeded, "Succeeded", "all processes ended well", 0};
  }
  if (end.how == How::kTimedOut) {
    const auto limit = deadline_of(o.experiment.spec);
    return {Phase::Failed, "DeadlineExceeded",
            fmt::format("ran longer than its time-out of {}",
                        limit ? format_age(*limit) : std::string("?"))};
  }
  if (const auto* pod = first_failed(o.pods)) {
    const auto* container = failed_container(*pod);
    // The laptop cluster's word for what `grapnel down` ended.
    if (container->reason.view() == "ClusterStopped") {
      return {Phase::Failed, "ClusterStopped", "the cluster was stopped", container->exit_code};
    }
    std::string message = fmt::format("{} ended with code {}", name_of(*pod), container->exit_code);
    if (!container->reason.empty() && container->reason.view() != "Error") {
      message += fmt::format(" ({})", container->reason.view());
    }
    return {Phase::Failed, "ProcessFailed", std::move(message), container->exit_code};
  }
  return {Phase::Failed, end.reason, end.message};
}

}  // namespace grapnel::experiment
