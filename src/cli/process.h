// The processes of an experiment: how they are called, and which of them a person means.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "api/pod.h"
#include "document/pattern.h"
#include "kube/client.h"
#include "operators/experiment/process.h"

namespace grapnel::cli {

struct Process {
  std::string name;  // worker-0
  int rank = 0;      // among all of the experiment
};
Process process_of(const api::Pod& pod);

struct ProcessFilter {
  std::string role;         // "": all components
  std::optional<int> rank;  // in the experiment; with a role: within that component
  bool companions = false;  // those beside the processes too; by their role they are always meant

  bool takes(const api::Pod& pod) const;
};

struct LogFilter {
  ProcessFilter processes;
  std::optional<Pattern> pattern;  // of lines

  bool takes_line(std::string_view line) const { return !pattern || pattern->matches(line); }
};

// The pods of that experiment, whatever their state; without a name: of all experiments.
kube::ListOptions pods_of(const kube::Key& experiment);
// Whether there is anything to read yet.
bool has_started(const api::Pod& pod);

// In the order of components and ranks, companions last.
bool comes_before(const experiment::ProcessId& a, const experiment::ProcessId& b);

// Those of the experiment that the filter takes, in the order of its components and ranks.
Task<Result<std::vector<api::Pod>>> find_processes(kube::Client& client, kube::Key experiment,
                                                   ProcessFilter filter);
// Those of which there are logs: the ones that are there, and those that are gone and whose logs
// the cluster has kept.
struct LoggedProcesses {
  std::vector<api::Pod> there;
  std::vector<api::Pod> gone;
};
Task<Result<LoggedProcesses>> find_logged_processes(kube::Client& client, kube::Key experiment,
                                                    ProcessFilter filter);
// The first of them that runs; an Error says what there is instead.
Task<Result<api::Pod>> find_running_process(kube::Client& client, kube::Key experiment,
                                            ProcessFilter filter);

}  // namespace grapnel::cli
