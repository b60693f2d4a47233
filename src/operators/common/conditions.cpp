#include "operators/common/conditions.h"

namespace grapnel::operators {

using api::ConditionStatus;
using EventType = runtime::Event::Type;

ConditionDraft::ConditionDraft(runtime::ObjectRef regarding, std::vector<api::Condition> conditions,
                               Time now, Exclusive exclusive)
    : regarding_(std::move(regarding)),
      conditions_(std::move(conditions)),
      now_(now),
      exclusive_(std::move(exclusive)) {}

void ConditionDraft::set_true(std::string_view type, std::string reason, std::string message,
                              EventType event) {
  end_others_of(type);
  set({.type = std::string(type),
       .status = ConditionStatus::True,
       .reason = std::move(reason),
       .message = std::move(message)},
      event);
}

void ConditionDraft::set_false(std::string_view type, std::string reason, std::string message,
                               EventType event) {
  if (api::find_condition(conditions_, type) == nullptr) return;
  set({.type = std::string(type),
       .status = ConditionStatus::False,
       .reason = std::move(reason),
       .message = std::move(message)},
      event);
}

void ConditionDraft::emit(EventType type, std::string reason, std::string message) {
  notices_.emit(regarding_, type, std::move(reason), std::move(message));
}

void ConditionDraft::add_events_to(runtime::Plan& plan) && {
  plan.add(std::move(notices_));
}

void ConditionDraft::set(api::Condition condition, EventType event) {
  std::string reason = condition.reason;
  std::string message = condition.message;
  if (!api::set_condition(conditions_, std::move(condition), now_)) return;
  emit(event, std::move(reason), std::move(message));
}

void ConditionDraft::end_others_of(std::string_view type) {
  for (const auto& [one, other] : exclusive_) {
    if (one == type) end(other);
    if (other == type) end(one);
  }
}

void ConditionDraft::end(std::string_view type) {
  const auto* condition = api::find_condition(conditions_, type);
  if (condition == nullptr || condition->status != ConditionStatus::True) return;
  api::Condition ended = *condition;
  ended.status = ConditionStatus::False;
  api::set_condition(conditions_, std::move(ended), now_);
}

}  // namespace grapnel::operators
