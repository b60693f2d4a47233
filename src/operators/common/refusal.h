// What a planner says of a write that the API server refused for good.
#pragma once

#include <string>

#include "kube/kind.h"
#include "runtime/plan.h"

namespace grapnel::operators {

// "create Job ml/train-w-0: exceeded quota"
std::string text_of(const runtime::Refusal& refusal);

// Whether it was to create an object of this kind.
bool is_creation_of(const kube::Kind& kind, const runtime::Refusal& refusal);
// Of an object that could not be created, its name.
std::string refused_name(const runtime::Refusal& refusal);

// Warns of it.
void report_refusal(runtime::ObjectRef regarding, const runtime::Refusal& refusal,
                    std::string reason, runtime::Plan& plan);

}  // namespace grapnel::operators
