#include "cli/process.h"

#include <algorithm>
#include <tuple>

#include "base/strings.h"
#include "cli/experiment.h"
#include "document/elements.h"

namespace grapnel::cli {
namespace {

// By the experiment first: a list may be of several.
void sort(std::vector<api::Pod>& pods) {
  const auto before = [](const api::Pod& a, const api::Pod& b) {
    if (a.meta.ns() != b.meta.ns()) return a.meta.ns() < b.meta.ns();
    const auto left = experiment::process_id(a.meta);
    const auto right = experiment::process_id(b.meta);
    if (comes_before(left, right)) return true;
    return !comes_before(right, left) && a.meta.name() < b.meta.name();
  };
  std::ranges::sort(pods, before);
}

// Pods that are gone, of which the laptop cluster has the logs.
constexpr kube::Kind kPodLog{"local.grapnel.dev", "v1alpha1", "PodLog", "podlogs"};

void add_pods(std::vector<api::Pod>& pods, const Json& list, const ProcessFilter& filter) {
  for (const Json& item : elements(find(list, "items"))) {
    auto pod = api::decode_pod(item, {.all_labels = true});
    if (pod && filter.takes(*pod)) pods.push_back(std::move(*pod));
  }
}

Failure nothing_runs(const std::string& name, const std::vector<api::Pod>& all,
                     const ProcessFilter& filter) {
  std::vector<std::string> others;
  for (const auto& pod : all) {
    if (!filter.takes(pod)) {
      others.push_back(process_of(pod).name);
    } else {
      return fail(Reason::kNotFound, "{} of '{}' is not running: it is {}", process_of(pod).name,
                  name, api::to_string(pod.phase));
    }
  }
  if (others.empty()) {
    return fail(Reason::kNotFound, "no process of '{0}' runs; `grapnel status {0}` says why", name);
  }
  return fail(Reason::kNotFound, "'{}' has no such process; there are {}", name,
              join(others, ", "));
}

}  // namespace

Process process_of(const api::Pod& pod) {
  auto id = experiment::process_id(pod.meta);
  return {.name = std::move(id.name), .rank = static_cast<int>(id.rank)};
}

bool comes_before(const experiment::ProcessId& a, const experiment::ProcessId& b) {
  return std::tie(a.experiment, a.is_companion, a.rank) <
         std::tie(b.experiment, b.is_companion, b.rank);
}

bool ProcessFilter::takes(const api::Pod& pod) const {
  const auto id = experiment::process_id(pod.meta);
  if (role.empty()) {
    return (companions || !id.is_companion) && (!rank || id.rank == *rank);
  }
  return id.component == role && (!rank || id.replica == *rank);
}

kube::ListOptions pods_of(const kube::Key& experiment) {
  return {
      .ns = experiment.ns.str(),
      .label_selector = experiment.name.empty()
                            ? std::string(experiment::kExperimentLabel)
                            : fmt::format("{}={}", experiment::kExperimentLabel, experiment.name)};
}

bool has_started(const api::Pod& pod) {
  return pod.phase == api::Pod::Phase::kRunning || pod.is_finished();
}

Task<Result<std::vector<api::Pod>>> find_processes(kube::Client& client, kube::Key experiment,
                                                   ProcessFilter filter) {
  const auto list = co_await client.list(kube::kinds::kPod, pods_of(experiment));
  if (!list) co_return fail(list.error());
  std::vector<api::Pod> pods;
  add_pods(pods, *list, filter);
  sort(pods);
  co_return pods;
}

Task<Result<LoggedProcesses>> find_logged_processes(kube::Client& client, kube::Key experiment,
                                                    ProcessFilter filter) {
  auto there = co_await find_processes(client, experiment, filter);
  if (!there) co_return fail(there.error());
  LoggedProcesses found{.there = std::move(*there), .gone = {}};
  const auto kept = co_await client.list(kPodLog, pods_of(experiment));
  if (kept) add_pods(found.gone, *kept, filter);  // only the laptop cluster keeps logs
  // One that went meanwhile is in both.
  std::erase_if(found.there, [&](const api::Pod& pod) {
    return !has_started(pod) || std::ranges::find(found.gone, pod.meta.uid, [](const api::Pod& g) {
                                  return g.meta.uid;
                                }) != found.gone.end();
  });
  sort(found.gone);
  co_return found;
}

Task<Result<api::Pod>> find_running_process(kube::Client& client, kube::Key experiment,
                                            ProcessFilter filter) {
  const auto found = co_await get_experiment(client, experiment);
  if (!found) co_return fail(found.error());
  const auto all = co_await find_processes(client, experiment, {.companions = true});
  if (!all) co_return fail(all.error());
  for (const auto& pod : *all) {
    const bool runs = pod.phase == api::Pod::Phase::kRunning && !pod.meta.is_being_deleted();
    if (runs && filter.takes(pod)) co_return pod;
  }
  co_return nothing_runs(experiment.name, *all, filter);
}

}  // namespace grapnel::cli
