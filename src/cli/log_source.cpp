#include "cli/log_source.h"

#include <charconv>

#include "operators/experiment/plan.h"

namespace grapnel::cli {

LogSource source_of(const api::Pod& pod) {
  LogSource source;
  const auto& labels = pod.meta.labels;
  const auto component = labels.get(experiment::kComponentLabel);
  const auto rank = labels.get(experiment::kRankLabel);
  std::from_chars(rank.data(), rank.data() + rank.size(), source.rank);
  // One Job: its pods are told apart by their rank. Several: as the pods' names do, since
  // `worker-2-0` could be of `worker` as well as of `worker-2`.
  const auto jobs = labels.get("jobset.sigs.k8s.io/global-replicas");
  source.name =
      jobs.empty() || jobs == "1"
          ? fmt::format("{}-{}", component, rank)
          : fmt::format("{}-{}-{}", component, labels.get("jobset.sigs.k8s.io/job-index"), rank);
  return source;
}

bool LogFilter::takes(const api::Pod& pod) const {
  if (!role.empty() && pod.meta.labels.get(experiment::kComponentLabel) != role) return false;
  return !rank || source_of(pod).rank == *rank;
}

kube::ListOptions pods_of(const kube::Key& experiment) {
  return {.ns = experiment.ns.str(),
          .label_selector = fmt::format("{}={}", experiment::kExperimentLabel, experiment.name)};
}

bool has_started(const api::Pod& pod) {
  return pod.phase == api::Pod::Phase::kRunning || pod.is_finished();
}

}  // namespace grapnel::cli
