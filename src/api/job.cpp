#include "api/job.h"

#include <algorithm>
#include <charconv>

#include "api/fields.h"

namespace grapnel::api {
namespace {

std::optional<int32_t> number_of(std::string_view text) {
  int32_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size() || number < 0) return std::nullopt;
  return number;
}

std::optional<JobSetPlace> decode_place(const std::optional<JsonView>& labels) {
  const auto name = text_at(labels, "jobset.sigs.k8s.io/replicatedjob-name");
  const auto index = number_of(text_at(labels, "jobset.sigs.k8s.io/job-index"));
  const auto attempt = number_of(text_at(labels, "jobset.sigs.k8s.io/restart-attempt"));
  if (name.empty() || !index || !attempt) return std::nullopt;
  return JobSetPlace{
      .replicated_job = Interned(name),
      .index = *index,
      .restart_attempt = *attempt,
      .job_restart_attempt = number_of(text_at(labels, "jobset.sigs.k8s.io/job-restart-attempt"))};
}

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
    return std::tie(j.meta, j.place, j.suspended, j.parallelism, j.completions, j.active, j.ready,
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
          .place = decode_place(view_at(object.find("metadata"), "labels")),
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
