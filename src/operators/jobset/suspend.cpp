#include "operators/jobset/suspend.h"

#include <algorithm>

#include "document/patch.h"
#include "operators/common/object.h"

namespace grapnel::jobset {
namespace {

runtime::Patch patch(const ChildJob& job, JsonObject body, std::string subresource = "") {
  return {.target = operators::ref_to(job),
          .body = std::move(body),
          .subresource = std::move(subresource)};
}

void copy(JsonObject& target, std::string_view key, const Json* value) {
  if (value != nullptr && value->is_object() && !value->as_object().empty()) target[key] = *value;
}

void add_missing(JsonArray& list, const JsonArray& more) {
  for (const Json& entry : more) {
    const bool is_there =
        std::ranges::any_of(list, [&](const Json& other) { return equal(other, entry); });
    if (!is_there) list.push_back(entry);
  }
}

// What the Job has, and what the JobSet's template has.
JsonObject merged_scheduling(const ChildJob& job, const api::ReplicatedJob& replicated) {
  JsonObject merged = job.scheduling.is_object() ? job.scheduling.as_object() : JsonObject();
  const Json* pod_spec = replicated.pod_spec();
  for (const auto key : api::kSchedulingFields) {
    const Json* more = pod_spec != nullptr ? find(*pod_spec, key) : nullptr;
    if (more == nullptr) continue;
    Json& own = merged[key];
    if (more->is_object()) {
      if (!own.is_object()) own.emplace_object();
      for (const auto& [name, value] : more->as_object()) own.as_object()[name] = value;
    } else if (more->is_array()) {
      if (!own.is_array()) own.emplace_array();
      add_missing(own.as_array(), more->as_array());
    }
  }
  return merged;
}

runtime::Patch resume(const ChildJob& job, const api::ReplicatedJob& replicated,
                      const JsonObject& scheduling) {
  JsonObject metadata;
  if (const Json* pod = replicated.pod_template()) {
    copy(metadata, "labels", at(*pod, "metadata", "labels"));
    copy(metadata, "annotations", at(*pod, "metadata", "annotations"));
  }
  JsonObject pod_template;
  if (!metadata.empty()) pod_template["metadata"] = std::move(metadata);
  if (auto change = merge_patch_between(job.scheduling, scheduling)) {
    pod_template["spec"] = std::move(*change);
  }
  JsonObject spec{{"suspend", false}};
  if (!pod_template.empty()) spec["template"] = std::move(pod_template);
  return patch(job, {{"spec", std::move(spec)}});
}

}  // namespace

runtime::Patch suspend_job(const ChildJob& job) {
  return patch(job, {{"spec", JsonObject{{"suspend", true}}}});
}

runtime::Patch forget_start(const ChildJob& job) {
  return patch(job, {{"status", JsonObject{{"startTime", nullptr}}}}, "status");
}

runtime::Patch resume_job(const ChildJob& job, const JobBuilder& builder) {
  return resume(job, builder.replicated(), builder.scheduling(job.place->index));
}

runtime::Patch resume_job_where_it_was(const ChildJob& job, const JobBuilder& builder) {
  return resume(job, builder.replicated(), merged_scheduling(job, builder.replicated()));
}

std::optional<runtime::Patch> scale_job(const ChildJob& job, const api::ReplicatedJob& replicated) {
  const auto parallelism = replicated.parallelism();
  const auto completions = replicated.completions();
  if (!parallelism || parallelism != completions || !replicated.is_indexed()) return std::nullopt;
  if (job.parallelism == *parallelism && job.completions == completions) return std::nullopt;
  return patch(
      job, {{"spec", JsonObject{{"parallelism", *parallelism}, {"completions", *completions}}}});
}

}  // namespace grapnel::jobset
