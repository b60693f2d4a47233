#include "cli/process.h"

#include <algorithm>
#include <charconv>
#include <tuple>

#include "base/strings.h"
#include "cli/experiment.h"
#include "operators/experiment/plan.h"
#include "operators/experiment/pod_template.h"
#include "operators/jobset/names.h"

namespace grapnel::cli {
namespace {

namespace keys = jobset::keys;

int number_of(std::string_view text) {
  int number = 0;
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

// A Job's place among all Jobs of the experiment, then the pod's in its Job.
std::tuple<std::string, int, int, std::string> order_of(const api::Pod& pod) {
  const auto& labels = pod.meta.labels;
  return {std::string(pod.meta.ns()) + "/" + std::string(labels.get(experiment::kExperimentLabel)),
          number_of(labels.get(keys::kJobGlobalIndex)),
          number_of(labels.get(experiment::kRankLabel)), pod.meta.name()};
}

bool is_companion(const api::Pod& pod) {
  return pod.meta.labels.has(experiment::kCompanionLabel);
}

// Pods that are gone, of which the laptop cluster has the logs.
constexpr kube::Kind kPodLog{"local.grapnel.dev", "v1alpha1", "PodLog", "podlogs"};

void add_pods(std::vector<api::Pod>& pods, const Json& list, const ProcessFilter& filter) {
  for (const Json& item : list.at("items").as_array()) {
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
      return fail(Reason::kNotFound, "{} of '{}' does not run: it is {}", process_of(pod).name,
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
  const auto& labels = pod.meta.labels;
  const auto component = labels.get(experiment::kComponentLabel);
  const auto rank = labels.get(experiment::kRankLabel);
  // One Job: its pods are told apart by their rank. Several: as the pods' names do, since
  // `worker-2-0` could be of `worker` as well as of `worker-2`.
  const auto jobs = labels.get(keys::kGlobalReplicas);
  if (is_companion(pod)) return {.name = std::string(component), .rank = 0};
  return {.name = jobs.empty() || jobs == "1"
                      ? fmt::format("{}-{}", component, rank)
                      : fmt::format("{}-{}-{}", component, labels.get(keys::kJobIndex), rank),
          .rank = number_of(rank)};
}

bool ProcessFilter::takes(const api::Pod& pod) const {
  if (role.empty() && !companions && is_companion(pod)) return false;
  if (!role.empty() && pod.meta.labels.get(experiment::kComponentLabel) != role) return false;
  return !rank || process_of(pod).rank == *rank;
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
  std::ranges::sort(pods, {}, order_of);
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
  std::ranges::sort(found.gone, {}, order_of);
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
