// What `grapnel plan` says: in words, what a manifest would make of a cluster.
#pragma once

#include <string>

#include "document/json.h"
#include "operators/experiment/compile.h"

namespace grapnel::cli {

struct PlanInput {
  std::string where;  // "the laptop cluster 'default', namespace default"
  const Json& experiment;
  const experiment::Compiled& child;
  const Json* existing = nullptr;  // an Experiment of the same name
};
std::string plan_text(const PlanInput& input);

}  // namespace grapnel::cli
