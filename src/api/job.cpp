#include "api/job.h"

#include <tuple>

#include "api/fields.h"

namespace grapnel::api {
namespace {

JobCondition decode_condition(const std::optional<JsonView>& condition) {
  return {.type = interned_at(condition, "type"),
          .is_true = text_at(condition, "status") == "True",
          .reason = interned_at(condition, "reason"),
          .message = std::string(text_at(condition, "message")),
          .last_transition_time = time_at(condition, "lastTransitionTime").value_or(Time{})};
}

JsonObject scheduling_of(const std::optional<JsonView>& pod_spec) {
  JsonObject scheduling;
  for (const auto key : kSchedulingFields) {
    if (const auto value = view_at(pod_spec, key)) scheduling[key] = value->to_json();
  }
  return scheduling;
}

}  // namespace

const JobCondition* Job::true_condition(std::string_view type) const {
  for (const auto& condition : conditions) {
    if (condition.is_true && condition.type.view() == type) return &condition;
  }
  return nullptr;
}

bool Job::operator==(const Job& other) const {
  const auto scalars = [](const Job& j) {
    return std::tie(j.meta, j.suspended, j.parallelism, j.completions, j.active, j.ready,
                    j.succeeded, j.failed, j.terminating, j.start_time, j.completion_time,
                    j.conditions);
  };
  return scalars(*this) == scalars(other) && equal(scheduling, other.scheduling);
}

Result<Job> decode_job(JsonView object, const kube::MetaOptions& kept) {
  auto meta = kube::decode_meta(object, kept);
  if (!meta) return fail(std::move(meta.error()));
  const auto spec = object.find("spec");
  const auto status = object.find("status");
  Job job{.meta = std::move(*meta),
          .suspended = bool_at(spec, "suspend"),
          .parallelism = count_at(spec, "parallelism").value_or(1),
          .completions = count_at(spec, "completions"),
          .active = count_at(status, "active").value_or(0),
          .ready = count_at(status, "ready").value_or(0),
          .succeeded = count_at(status, "succeeded").value_or(0),
          .failed = count_at(status, "failed").value_or(0),
          .terminating = count_at(status, "terminating").value_or(0),
          .start_time = time_at(status, "startTime"),
          .completion_time = time_at(status, "completionTime")};
  for_each_at(status, "conditions",
              [&](JsonView condition) { job.conditions.push_back(decode_condition(condition)); });
  if (job.suspended) {
    job.scheduling = scheduling_of(view_at(view_at(spec, "template"), "spec"));
  }
  return job;
}

}  // namespace grapnel::api
