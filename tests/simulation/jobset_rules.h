// What must hold of JobSets whatever happens, whoever creates them.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "tests/simulation/subject.h"

namespace grapnel::simulation {

class JobSetRules {
 public:
  std::optional<std::string> check_write(const Server& server, const WriteSeen& write);
  // A restart that blocks does not wait for pods on nodes that are lost, once its patience is over.
  std::optional<std::string> check_alive(const Server& server, Time now);
  std::optional<std::string> check_settled(const Server& server) const;

  // Whether a restart waits for a pod on a node that is lost.
  static bool waits_for_lost_node(const Server& server);

 private:
  std::optional<std::string> check_bound(const WriteSeen& write);

  std::map<std::string, int, std::less<>> changes_;  // of a JobSet's spec and children, by its uid
  std::map<std::string, int, std::less<>> status_writes_;   // by operators
  std::map<std::string, Time, std::less<>> blocked_since_;  // by the uid of the pod waited for
};

}  // namespace grapnel::simulation
