// Exclusive placement: each Job of a JobSet alone in a domain of the topology (a rack, a node
// pool), all of its pods in that one.
//
// The leader of a Job (completion index 0) is placed by affinities: with its own Job's pods, away
// from those of others. The other pods follow it by node selector, which costs the scheduler far
// less. They are born with a scheduling gate, and lose it once the leader has a node: so none is
// refused, none lands elsewhere, and none is placed by a leader that is about to go.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "api/jobset.h"
#include "api/node.h"
#include "api/pod.h"
#include "runtime/plan.h"

namespace grapnel::jobset {

inline constexpr std::string_view kFollowerGate = "jobset.sigs.k8s.io/follows-leader";

using FindNode = std::function<const api::Node*(std::string_view name)>;

// A pod as the admission webhook returns it; pods of no JobSet are left as they are.
Json admitted_pod(Json pod);
// Says in CEL of a JobSet's pod whether the webhook may change it.
std::string needs_admission_expression();

// Lets go of followers whose leader has a node, and deletes those that were placed in another
// domain than it.
runtime::Plan place_followers(const std::vector<const api::Pod*>& pods, const FindNode& find_node,
                              Time now);

// Whether a change of this pod can change a plan; most cannot.
bool concerns_planner(const api::Pod& pod);

// What a cache of Pods must keep for this.
Result<api::Pod> decode_child_pod(JsonView object);

}  // namespace grapnel::jobset
