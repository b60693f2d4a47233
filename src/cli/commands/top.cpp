// grapnel top: what the processes of experiments use of CPU and memory now.
#include <iostream>
#include <map>

#include "base/quantity.h"
#include "cli/commands.h"
#include "cli/experiment.h"
#include "cli/loop.h"
#include "cli/manifest.h"
#include "cli/output.h"
#include "cli/process.h"
#include "cli/table.h"
#include "cli/target.h"
#include "document/elements.h"

namespace grapnel::cli {
namespace {

constexpr kube::Kind kPodMetrics{"metrics.k8s.io", "v1beta1", "PodMetrics", "pods"};

struct Used {
  Quantity cpu;
  Quantity memory;
};

std::map<std::string, Used> by_pod(const Json& list) {
  std::map<std::string, Used> out;
  for (const Json& item : elements(find(list, "items"))) {
    Used& used = out[fmt::format("{}/{}", string_or(at(item, "metadata", "namespace")),
                                 string_or(at(item, "metadata", "name")))];
    for (const Json& container : elements(find(item, "containers"))) {
      const auto cpu = Quantity::parse(string_or(at(container, "usage", "cpu")));
      const auto memory = Quantity::parse(string_or(at(container, "usage", "memory")));
      used.cpu = used.cpu + cpu.value_or(Quantity());
      used.memory = used.memory + memory.value_or(Quantity());
    }
  }
  return out;
}

Error explained_metrics(const Error& error) {
  if (error.reason != Reason::kNotFound && error.reason != Reason::kServiceUnavailable) {
    return error;
  }
  return {.reason = error.reason,
          .message =
              "this cluster does not tell what its pods use: metrics.k8s.io is absent or "
              "does not answer (metrics-server serves it)"};
}

std::string table_of(const std::vector<api::Pod>& pods, const std::map<std::string, Used>& used,
                     const ExperimentOptions& options) {
  constexpr int64_t kMebi = 1 << 20;
  std::vector<std::string> headings{"PROCESS", "CPU", "MEMORY"};
  if (options.name.empty()) headings.insert(headings.begin(), "EXPERIMENT");
  if (options.all_namespaces) headings.insert(headings.begin(), "NAMESPACE");
  if (options.output == Output::kWide) headings.insert(headings.end(), {"POD", "NODE"});
  Table table(headings);
  for (const auto& pod : pods) {
    std::vector<std::string> row{process_of(pod).name, "-", "-"};
    if (const auto found = used.find(pod.meta.key.text()); found != used.end()) {
      row[1] = fmt::format("{}m", found->second.cpu.milli());
      row[2] = fmt::format("{}Mi", (found->second.memory.units() + kMebi - 1) / kMebi);
    } else if (pod.phase != api::Pod::Phase::kRunning) {
      continue;
    }
    if (options.name.empty()) {
      row.insert(row.begin(), experiment::process_id(pod.meta).experiment);
    }
    if (options.all_namespaces) row.insert(row.begin(), std::string(pod.meta.ns()));
    if (options.output == Output::kWide) {
      row.insert(row.end(), {pod.meta.name(), std::string(pod.node.view())});
    }
    table.add(std::move(row));
  }
  return table.text();
}

Task<int> show(Executor executor, ExperimentOptions options) {
  auto to = connect_to(executor, options.target);
  if (!to) co_return report(to.error(), kUsage);
  const kube::Key key{Interned(options.all_namespaces ? "" : to->ns), options.name};
  if (!options.name.empty()) {
    const auto found = co_await get_experiment(*to->client, key);
    if (!found) co_return report(found.error(), kFailed);
  }
  const auto metrics = co_await to->client->list(kPodMetrics, pods_of(key));
  if (!metrics) co_return report(explained_metrics(metrics.error()), kFailed);
  if (is_document(options.output)) {
    print_document(*metrics, options.output);
    co_return kOk;
  }
  const auto used = by_pod(*metrics);
  if (options.output == Output::kName) {
    for (const auto& [name, _] : used) std::cout << name.substr(name.find('/') + 1) << "\n";
    co_return kOk;
  }
  const auto pods = co_await find_processes(*to->client, key, {});
  if (!pods) co_return report(pods.error(), kFailed);
  if (used.empty()) {
    std::cerr << "no process runs\n";
    co_return kOk;
  }
  std::cout << table_of(*pods, used, options);
  co_return kOk;
}

}  // namespace

int top(const ExperimentOptions& options) {
  return run_loop([&](Executor executor) { return show(executor, options); });
}

}  // namespace grapnel::cli
