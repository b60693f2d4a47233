// The conditions of a status while a plan is made, and the event that goes with each change.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "api/condition.h"
#include "runtime/plan.h"

namespace grapnel::operators {

class ConditionDraft {
 public:
  // Types of which at most one is true at a time. They must outlive the draft.
  using Exclusive = std::vector<std::pair<std::string_view, std::string_view>>;

  ConditionDraft(runtime::ObjectRef regarding, std::vector<api::Condition> conditions, Time now,
                 Exclusive exclusive = {});

  const std::vector<api::Condition>& all() const { return conditions_; }
  void set_true(std::string_view type, std::string reason, std::string message,
                runtime::Event::Type event = runtime::Event::Type::kNormal);
  // A condition that never held is not reported as false.
  void set_false(std::string_view type, std::string reason, std::string message,
                 runtime::Event::Type event = runtime::Event::Type::kNormal);
  // An event without a condition.
  void emit(runtime::Event::Type type, std::string reason, std::string message);

  // The events, in their order.
  void add_events_to(runtime::Plan& plan) &&;

 private:
  void set(api::Condition condition, runtime::Event::Type event);
  void end_others_of(std::string_view type);
  void end(std::string_view type);

  runtime::ObjectRef regarding_;
  std::vector<api::Condition> conditions_;
  Time now_;
  Exclusive exclusive_;
  runtime::Plan notices_;
};

}  // namespace grapnel::operators
