// What a cluster does for JobSets by itself, on the model: the Job controller, kubelets, and nodes
// that get lost and come back. Small steps, each decided by chance, so that everything else can
// come between any two of them.
#pragma once

#include <set>
#include <string>
#include <string_view>

#include "base/random.h"
#include "tests/simulation/model.h"

namespace grapnel::simulation {

class JobSetCluster {
 public:
  // How likely a running pod fails instead of succeeding; none once trouble is over.
  void step(ApiModel& model, Random& random, double failures);

  void lose_node(ApiModel& model, Random& random);
  void recover_nodes(ApiModel& model);

 private:
  void make_nodes(ApiModel& model);
  void step_pod(ApiModel& model, Random& random, const Json& pod, double failures);
  void step_job(ApiModel& model, Random& random, const Json& job);
  void run_job(ApiModel& model, Random& random, const Json& job);
  bool is_lost(std::string_view node) const { return lost_.contains(std::string(node)); }

  std::set<std::string> lost_;
  bool has_nodes_ = false;
  uint64_t pods_made_ = 0;
};

// The pods whose controller has this uid.
std::vector<const Json*> pods_of(const ApiModel& model, std::string_view uid);
bool is_true(const Json& object, std::string_view condition);

}  // namespace grapnel::simulation
