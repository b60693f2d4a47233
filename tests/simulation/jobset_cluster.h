// What a cluster does for JobSets by itself: the scheduler, the Job controller, kubelets, and nodes
// that get lost and come back. Small steps, each decided by chance, so that everything else can
// come between any two of them.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/random.h"
#include "tests/simulation/subject.h"

namespace grapnel::simulation {

class JobSetCluster {
 public:
  // One pod and one Job at most. Returns after how long there may be more to do; nothing: when
  // somebody has written something. `failures`: how likely a running pod fails.
  std::optional<Duration> step(Server& server, Random& random, Time now, double failures);

  // Its kubelet falls silent at once. That a node does not answer is seen within 40 seconds.
  void lose_node(Server& server, Random& random, Time now);
  void recover_nodes(Server& server);
  bool has_lost_nodes() const { return !lost_.empty(); }
  // How likely the Job controller is refused a pod, and says so in an Event.
  void set_refusals(double chance) { refusals_ = chance; }

 private:
  struct Lost {
    Time seen_at{};
    bool is_seen = false;
  };
  void make_nodes(Server& server);
  void see_lost_nodes(Server& server, Time now);
  bool step_pod(Server& server, Random& random, const Json& pod, double failures);
  bool step_job(Server& server, Random& random, const Json& job,
                const std::vector<const Json*>& pods, Time now);
  bool run_job(Server& server, Random& random, const Json& job,
               const std::vector<const Json*>& pods, Time now);
  void tell_refusal(Server& server, const Json& job, Time now);
  bool is_lost(std::string_view node) const { return lost_.contains(node); }

  std::map<std::string, Lost, std::less<>> lost_;
  bool has_nodes_ = false;
  double refusals_ = 0;
  uint64_t pods_made_ = 0;
};

bool is_true(const Json& object, std::string_view condition);
bool has_ended(const Json& pod);

}  // namespace grapnel::simulation
