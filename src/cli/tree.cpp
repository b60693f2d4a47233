#include "cli/tree.h"

#include <fmt/format.h>

#include <algorithm>

namespace grapnel::cli {
namespace {

std::string with_reason(std::string_view state, std::string_view reason) {
  return reason.empty() ? std::string(state) : fmt::format("{} ({})", state, reason);
}

std::string state_of(const api::Job& job) {
  if (job.true_condition("Complete") != nullptr) return "Complete";
  if (const auto* failed = job.true_condition("Failed")) {
    return with_reason("Failed", failed->reason.view());
  }
  if (job.suspended) return "Suspended";
  return fmt::format("{} active, {} ready, {} of {} succeeded", job.active, job.ready,
                     job.succeeded, job.completions.value_or(job.parallelism));
}

// The first container that is not as it should be says more than the phase.
std::string state_of(const api::Pod& pod) {
  using State = api::ContainerStatus::State;
  const auto phase = pod.meta.is_being_deleted() && !pod.is_finished()
                         ? std::string_view("Terminating")
                         : api::to_string(pod.phase);
  for (const auto& container : pod.containers) {
    if (container.state == State::kTerminated && container.exit_code != 0) {
      return fmt::format("{} ({}, exit code {})", phase, container.reason.view(),
                         container.exit_code);
    }
    if (container.state == State::kWaiting && !container.reason.view().empty()) {
      return with_reason(phase, container.reason.view());
    }
  }
  if (const auto* scheduled = pod.condition("PodScheduled")) {
    return with_reason(phase, scheduled->message);
  }
  return with_reason(phase, pod.reason.view());
}

std::string line_of(const api::Pod& pod) {
  std::string line = fmt::format("Pod {}  {}", pod.meta.name(), state_of(pod));
  if (!pod.node.view().empty()) line += fmt::format("  on {}", pod.node.view());
  int64_t restarts = 0;
  for (const auto& container : pod.containers) restarts += container.restarts;
  if (restarts > 0) line += fmt::format("  {} restarts", restarts);
  return line;
}

bool owns(const api::Job& job, const api::Pod& pod) {
  const auto* owner = pod.meta.controller();
  return owner != nullptr && owner->uid == job.meta.uid;
}

}  // namespace

std::string processes(const api::ExperimentStatus& status) {
  int64_t well = 0;
  int64_t wanted = 0;
  for (const auto& component : status.components) {
    well += component.ready + component.succeeded;
    wanted += component.desired;
  }
  return fmt::format("{}/{}", well, wanted);
}

std::string age(const api::Experiment& experiment, Time now) {
  const auto& status = experiment.status;
  const Time begin = status.start_time.value_or(experiment.meta.created);
  return format_age(std::max(status.end_time.value_or(now) - begin, Duration{0}));
}

std::string render_tree(const ExperimentTree& tree, Time now) {
  const auto& [experiment, jobs, pods] = tree;
  const auto& status = experiment.status;
  std::string out = fmt::format("Experiment {}  {}", experiment.meta.name(),
                                status.phase ? api::name_of(*status.phase) : "Pending");
  if (!status.message.empty()) out += fmt::format(" ({})", status.message);
  out += fmt::format("  {}  {}\n", api::name_of(experiment.spec.op), age(experiment, now));
  if (!status.child) return out;
  out += fmt::format("└─ {} {}  {} processes", status.child->kind, status.child->name,
                     processes(status));
  if (status.restarts > 0) out += fmt::format("  {} restarts", status.restarts);
  out += "\n";
  for (size_t j = 0; j < jobs.size(); ++j) {
    const bool last_job = j + 1 == jobs.size();
    out += fmt::format("   {} Job {}  {}\n", last_job ? "└─" : "├─", jobs[j]->meta.name(),
                       state_of(*jobs[j]));
    std::vector<const api::Pod*> owned;
    std::ranges::copy_if(pods, std::back_inserter(owned),
                         [&](const api::Pod* pod) { return owns(*jobs[j], *pod); });
    for (size_t p = 0; p < owned.size(); ++p) {
      out += fmt::format("   {}  {} {}\n", last_job ? " " : "│",
                         p + 1 == owned.size() ? "└─" : "├─", line_of(*owned[p]));
    }
  }
  return out;
}

}  // namespace grapnel::cli
