// A batch/v1 Job as planners read it. It cannot be written back: it holds only a part.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "document/json_view.h"
#include "kube/meta.h"

namespace grapnel::api {

// Of a pod template, where its pods may run: the fields that may change while a Job is suspended.
inline constexpr std::array<std::string_view, 3> kSchedulingFields = {"nodeSelector", "tolerations",
                                                                      "schedulingGates"};

struct JobCondition {
  Interned type;  // Complete, Failed, FailureTarget, SuccessCriteriaMet, Suspended
  bool is_true = false;
  Interned reason;
  std::string message;
  Time last_transition_time{};
  bool operator==(const JobCondition&) const = default;
};

struct Job {
  kube::Meta meta;
  bool suspended = false;
  int32_t parallelism = 1;
  std::optional<int32_t> completions;
  int32_t active = 0;
  int32_t ready = 0;
  int32_t succeeded = 0;
  int32_t failed = 0;
  int32_t terminating = 0;
  std::optional<Time> start_time;
  std::optional<Time> completion_time;
  std::vector<JobCondition> conditions;
  Json scheduling;  // an object, while suspended: kSchedulingFields of the pod template

  // The condition of that type when it is true, or nullptr.
  const JobCondition* true_condition(std::string_view type) const;
  bool operator==(const Job& other) const;
};

Result<Job> decode_job(JsonView object, const kube::MetaOptions& kept = {});

}  // namespace grapnel::api
