// Follows one experiment to its end: says how it stands and prints what its processes write.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>

#include "api/experiment.h"
#include "api/pod.h"
#include "base/async.h"
#include "base/random.h"
#include "cli/log_printer.h"
#include "cli/process.h"
#include "kube/client.h"
#include "runtime/informer.h"

namespace grapnel::cli {

struct FollowOptions {
  LogFilter filter = {};
  kube::LogOptions logs = {};
};

class Follower {
 public:
  Follower(Executor executor, kube::Client& client, Clock& clock, kube::Key experiment,
           FollowOptions options, LogPrinter& printer);

  // Until the experiment has ended and its logs are printed; its last status. nullopt: it was
  // deleted.
  Task<std::optional<api::ExperimentStatus>> run();

 private:
  void on_experiment(const api::Experiment* after);
  void on_pod(const api::Pod* after);
  Task<> print_logs(kube::Key pod, Process source);

  Executor executor_;
  kube::Client& client_;
  Clock& clock_;
  kube::Key key_;
  FollowOptions options_;
  LogPrinter& printer_;
  Random random_;
  runtime::Informer<api::Experiment> experiments_;
  runtime::Informer<api::Pod> pods_;
  std::map<std::string, Spawned> readers_;  // by pod uid
  std::optional<api::ExperimentStatus> last_;
  std::string said_;
  bool gone_ = false;
  Signal changed_;
};

}  // namespace grapnel::cli
