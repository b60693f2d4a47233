// Follows one experiment to its end: says how it stands and prints all that its processes write,
// each line once, also where connections are cut and a laptop cluster is restarted.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include "api/experiment.h"
#include "api/pod.h"
#include "base/async.h"
#include "base/random.h"
#include "cli/contact.h"
#include "cli/log_printer.h"
#include "cli/process.h"
#include "kube/client.h"
#include "runtime/informer.h"

namespace grapnel::cli {

struct FollowOptions {
  LogFilter filter = {};
  kube::LogOptions logs = {};
  std::set<std::string> printed = {};  // the uids of pods whose logs were printed already
  Cluster cluster = {};
};

class Follower {
 public:
  Follower(Executor executor, kube::Client& client, Clock& clock, kube::Key experiment,
           FollowOptions options, LogPrinter& printer);

  // Until the experiment has ended and its logs are printed; its last status. nullopt: it was
  // deleted. An Error: the cluster is gone.
  Task<Result<std::optional<api::ExperimentStatus>>> run();

 private:
  struct Reader {
    std::string name;  // of the process
    Spawned task;
    bool has_ended = false;  // the process: it writes no more
    Instant heard{};
  };

  void on_experiment(const api::Experiment* after);
  void on_pod(const api::Pod* before, const api::Pod* after);
  void read(const api::Pod& pod, bool has_ended);
  bool has_ended() const { return last_ && last_->end_time; }
  Task<> print_logs(kube::Key pod, Process source, Reader& reader);
  Task<> follow();
  Task<> read_the_rest();
  Task<> finish_reading();

  Executor executor_;
  kube::Client& client_;
  Clock& clock_;
  kube::Key key_;
  FollowOptions options_;
  LogPrinter& printer_;
  Random random_;
  runtime::Informer<api::Experiment> experiments_;
  runtime::Informer<api::Pod> pods_;
  std::map<std::string, Reader> readers_;  // by pod uid
  std::optional<api::ExperimentStatus> last_;
  std::string said_;
  bool gone_ = false;
  Signal changed_;
};

}  // namespace grapnel::cli
