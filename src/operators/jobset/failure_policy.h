// What a JobSet does when Jobs of it failed.
#pragma once

#include "operators/jobset/children.h"
#include "operators/jobset/plan.h"
#include "operators/jobset/status.h"

namespace grapnel::jobset {

// At least one Job must have failed. Decides for the first rule that matches, about the Job that
// failed first among those it matches; the rest comes with the next plan, seen in the new status.
void apply_failure_policy(const Observed& observed, const Children& children, StatusDraft& status);

}  // namespace grapnel::jobset
