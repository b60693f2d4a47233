#include "api/condition.h"

#include <algorithm>

namespace grapnel::api {

const Condition* find_condition(const std::vector<Condition>& conditions, std::string_view type) {
  const auto found = std::ranges::find(conditions, type, &Condition::type);
  return found == conditions.end() ? nullptr : &*found;
}

bool is_condition_true(const std::vector<Condition>& conditions, std::string_view type) {
  const Condition* condition = find_condition(conditions, type);
  return condition != nullptr && condition->status == ConditionStatus::True;
}

bool set_condition(std::vector<Condition>& conditions, Condition condition, Time now) {
  condition.last_transition_time = now;
  const auto found = std::ranges::find(conditions, condition.type, &Condition::type);
  if (found == conditions.end()) {
    conditions.push_back(std::move(condition));
    return true;
  }
  if (found->status == condition.status) {
    condition.last_transition_time = found->last_transition_time;
  }
  if (*found == condition) return false;
  *found = std::move(condition);
  return true;
}

bool remove_condition(std::vector<Condition>& conditions, std::string_view type) {
  return std::erase_if(conditions, [&](const Condition& c) { return c.type == type; }) > 0;
}

}  // namespace grapnel::api
