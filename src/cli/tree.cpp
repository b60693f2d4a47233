#include "cli/tree.h"

#include <fmt/format.h>

#include <algorithm>

#include "cli/process.h"

namespace grapnel::cli {
namespace {

std::string with_reason(std::string_view state, std::string_view reason) {
  return reason.empty() ? std::string(state) : fmt::format("{} ({})", state, reason);
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

struct ProcessOfPod {
  experiment::ProcessId id;
  const api::Pod* pod;
};

std::vector<ProcessOfPod> sorted_processes(const std::vector<const api::Pod*>& pods) {
  std::vector<ProcessOfPod> all;
  for (const auto* pod : pods) all.push_back({experiment::process_id(pod->meta), pod});
  std::ranges::sort(all, [](const ProcessOfPod& a, const ProcessOfPod& b) {
    if (comes_before(a.id, b.id)) return true;
    return !comes_before(b.id, a.id) && a.pod->meta.created < b.pod->meta.created;
  });
  return all;
}

std::string line_of(const ProcessOfPod& process) {
  const auto& pod = *process.pod;
  std::string line = fmt::format("{}  {}", process.id.name, state_of(pod));
  if (!pod.node.view().empty()) line += fmt::format("  on {}", pod.node.view());
  int64_t restarts = 0;
  for (const auto& container : pod.containers) restarts += container.restarts;
  if (restarts > 0) line += fmt::format("  {} restarts", restarts);
  return line + fmt::format("  (pod {})", pod.meta.name());
}

// "3 ready, 1 failed, of 4"
std::string counts_of(const api::ComponentStatus& component) {
  std::string counts;
  const auto add = [&](int64_t count, std::string_view what) {
    if (count > 0) counts += fmt::format("{}{} {}", counts.empty() ? "" : ", ", count, what);
  };
  add(component.ready, "ready");
  add(component.succeeded, "succeeded");
  add(component.failed, "failed");
  return fmt::format("{} of {}", counts.empty() ? "0 ready" : counts, component.desired);
}

// A component with its processes, or what runs beside them.
struct Branch {
  std::string heading;
  std::vector<std::string> leaves;
};

std::vector<Branch> branches_of(const ExperimentTree& tree) {
  const auto processes = sorted_processes(tree.pods);
  std::vector<Branch> branches;
  for (const auto& component : tree.experiment.status.components) {
    auto& branch = branches.emplace_back(
        Branch{fmt::format("{}  {}", component.name, counts_of(component)), {}});
    for (const auto& process : processes) {
      if (process.id.is_companion || process.id.component != component.name) continue;
      branch.leaves.push_back(line_of(process));
    }
  }
  for (const auto& process : processes) {
    if (process.id.is_companion) branches.push_back({line_of(process), {}});
  }
  return branches;
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
  const auto& experiment = tree.experiment;
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
  const auto branches = branches_of(tree);
  for (size_t b = 0; b < branches.size(); ++b) {
    const bool is_last = b + 1 == branches.size();
    const auto& [heading, leaves] = branches[b];
    out += fmt::format("   {} {}\n", is_last ? "└─" : "├─", heading);
    for (size_t l = 0; l < leaves.size(); ++l) {
      out += fmt::format("   {}  {} {}\n", is_last ? " " : "│",
                         l + 1 == leaves.size() ? "└─" : "├─", leaves[l]);
    }
  }
  return out;
}

}  // namespace grapnel::cli
