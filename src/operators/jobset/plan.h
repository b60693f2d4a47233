// Brings the Jobs of one JobSet to what its spec asks for. Pure: it reads what was observed and
// answers with what to do.
#pragma once

#include <vector>

#include "api/jobset.h"
#include "api/service.h"
#include "operators/jobset/child_job.h"
#include "operators/jobset/placement.h"
#include "runtime/plan.h"

namespace grapnel::jobset {

struct Observed {
  const api::JobSet& jobset;
  // Those whose controller is this JobSet, by uid.
  std::vector<const ChildJob*> jobs;
  // The one of the subdomain's name, whoever made it; nullptr: there is none.
  const api::Service* service = nullptr;
  // Names of the PersistentVolumeClaims that carry the JobSet's name as a label.
  std::vector<std::string_view> claims = {};
  // Those of its Jobs, and the nodes they run on. Read only where needs_pods() says so.
  std::vector<const api::Pod*> pods = {};
  FindNode find_node = nullptr;
  // Why the last plan could not be carried out.
  const runtime::Refusal* refused = nullptr;
  // Does what the original controller does wherever ours differs on purpose (README.md).
  bool strict = false;
};

// Whether the planner reads the JobSet's pods: for exclusive placement and after a restart.
bool needs_pods(const api::JobSet& jobset);

runtime::Plan plan(const Observed& observed, Time now);

}  // namespace grapnel::jobset
