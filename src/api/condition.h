// metav1.Condition: one observation about an object, as every kind's status lists them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "api/describe.h"
#include "base/time.h"

namespace grapnel::api {

BOOST_DEFINE_ENUM_CLASS(ConditionStatus, True, False, Unknown)

struct Condition {
  std::string type;
  ConditionStatus status = ConditionStatus::Unknown;
  std::string reason;
  std::string message;
  Time last_transition_time{};
  std::optional<int64_t> observed_generation;
  bool operator==(const Condition&) const = default;
};

const Condition* find_condition(const std::vector<Condition>& conditions, std::string_view type);
bool is_condition_true(const std::vector<Condition>& conditions, std::string_view type);

// Adds the condition or replaces the one of its type. The time of the last transition stays when
// the status does. True: something changed.
bool set_condition(std::vector<Condition>& conditions, Condition condition, Time now);
bool remove_condition(std::vector<Condition>& conditions, std::string_view type);

template <>
struct Description<Condition> {
  static constexpr std::string_view kDoc = "One observation about the object.";
  static auto fields() {
    return std::tuple{
        field("type", &Condition::type, "What is observed.").required().max_length(316),
        field("status", &Condition::status, "Whether it holds.").required(),
        field("observedGeneration", &Condition::observed_generation,
              "The generation of the spec that was looked at.")
            .minimum(0),
        field("lastTransitionTime", &Condition::last_transition_time,
              "When the status last changed.")
            .required(),
        field("reason", &Condition::reason, "Why, in one CamelCase word.")
            .required()
            .min_length(1)
            .max_length(1024)
            .pattern("^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$"),
        field("message", &Condition::message, "Why, for a person.").required().max_length(32768),
    };
  }
};

}  // namespace grapnel::api
