#include "operators/jobset/suspend.h"

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

}  // namespace

runtime::Patch suspend_job(const ChildJob& job) {
  return patch(job, {{"spec", JsonObject{{"suspend", true}}}});
}

runtime::Patch forget_start(const ChildJob& job) {
  return patch(job, {{"status", JsonObject{{"startTime", nullptr}}}}, "status");
}

runtime::Patch resume_job(const ChildJob& job, const JobBuilder& builder) {
  JsonObject metadata;
  if (const Json* pod = builder.replicated().pod_template()) {
    copy(metadata, "labels", at(*pod, "metadata", "labels"));
    copy(metadata, "annotations", at(*pod, "metadata", "annotations"));
  }
  JsonObject pod_template;
  if (!metadata.empty()) pod_template["metadata"] = std::move(metadata);
  if (auto change = merge_patch_between(job.scheduling, builder.scheduling(job.place->index))) {
    pod_template["spec"] = std::move(*change);
  }
  JsonObject spec{{"suspend", false}};
  if (!pod_template.empty()) spec["template"] = std::move(pod_template);
  return patch(job, {{"spec", std::move(spec)}});
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
