#include "operators/experiment/child_state.h"

#include "operators/common/object.h"
#include "operators/jobset/names.h"

namespace grapnel::experiment {
namespace {

using End = ChildState::End;

// The only rule in the failure policy that we compile is the one for the deadline.
constexpr std::string_view kRuleFailedIt = "FailJobSetFailurePolicyAction";

std::optional<End> end_of(const api::JobSet& jobset) {
  const auto& conditions = jobset.status.conditions;
  if (api::is_condition_true(conditions, "Completed")) {
    return End{.how = End::How::kSucceeded, .reason = "Completed", .message = ""};
  }
  const auto* failed = api::find_condition(conditions, "Failed");
  if (failed == nullptr || failed->status != api::ConditionStatus::True) return std::nullopt;
  return End{
      .how = failed->reason == kRuleFailedIt ? End::How::kTimedOut : End::How::kFailed,
      .reason = failed->reason,
      .message = failed->message,
  };
}

}  // namespace

runtime::Patch ChildState::suspension() const {
  return {.target = ref, .body = JsonObject{{"spec", JsonObject{{"suspend", true}}}}};
}

bool ChildState::owns(const api::Pod& pod) const {
  if (pod.meta.labels.get(jobset::keys::kJobSetUid) == ref.uid.text()) return true;
  const auto* controller = pod.meta.controller();
  return controller != nullptr && controller->uid == ref.uid;
}

ChildState jobset_child_state(const api::JobSet& jobset) {
  const auto* controller = jobset.meta.controller();
  return {.ref = operators::ref_to(jobset),
          .owner = controller == nullptr ? kube::Uid() : controller->uid,
          .is_of_experiment = controller != nullptr && controller->name == jobset.meta.name() &&
                              controller->kind.view() == kube::kinds::kExperiment.kind,
          .is_suspended = jobset.is_suspended(),
          .restarts = jobset.status.restarts.value_or(0),
          .ended = end_of(jobset)};
}

}  // namespace grapnel::experiment
