#include "operators/jobset/suspend.h"

#include <algorithm>

#include "operators/jobset/deletion.h"

namespace grapnel::jobset {
namespace {

runtime::Patch patch(const api::Job& job, JsonObject body, std::string subresource = "") {
  return {.target = ref_to(job), .body = std::move(body), .subresource = std::move(subresource)};
}

void copy(JsonObject& target, std::string_view key, const Json* value) {
  if (value != nullptr && value->is_object() && !value->as_object().empty()) target[key] = *value;
}

// A merge patch replaces lists whole: what is there already must be in it.
void add_to_list(JsonObject& target, std::string_view key, const Json& have, const Json* more) {
  if (more == nullptr || !more->is_array() || more->as_array().empty()) return;
  JsonArray list = have.is_array() ? have.as_array() : JsonArray();
  const size_t before = list.size();
  for (const Json& item : more->as_array()) {
    if (std::ranges::none_of(list, [&](const Json& other) { return equal(item, other); })) {
      list.push_back(item);
    }
  }
  if (list.size() > before) target[key] = std::move(list);
}

}  // namespace

runtime::Patch suspend_job(const api::Job& job) {
  return patch(job, {{"spec", JsonObject{{"suspend", true}}}});
}

runtime::Patch forget_start(const api::Job& job) {
  return patch(job, {{"status", JsonObject{{"startTime", nullptr}}}}, "status");
}

runtime::Patch resume_job(const api::Job& job, const api::ReplicatedJob& replicated) {
  JsonObject metadata;
  JsonObject pod_spec;
  if (const Json* pod = replicated.pod_template()) {
    copy(metadata, "labels", at(*pod, "metadata", "labels"));
    copy(metadata, "annotations", at(*pod, "metadata", "annotations"));
    copy(pod_spec, "nodeSelector", at(*pod, "spec", "nodeSelector"));
    add_to_list(pod_spec, "tolerations", job.tolerations, at(*pod, "spec", "tolerations"));
    add_to_list(pod_spec, "schedulingGates", job.scheduling_gates,
                at(*pod, "spec", "schedulingGates"));
  }
  JsonObject pod_template;
  if (!metadata.empty()) pod_template["metadata"] = std::move(metadata);
  if (!pod_spec.empty()) pod_template["spec"] = std::move(pod_spec);
  JsonObject spec{{"suspend", false}};
  if (!pod_template.empty()) spec["template"] = std::move(pod_template);
  return patch(job, {{"spec", std::move(spec)}});
}

std::optional<runtime::Patch> scale_job(const api::Job& job, const api::ReplicatedJob& replicated) {
  const auto parallelism = replicated.parallelism();
  const auto completions = replicated.completions();
  if (!parallelism || parallelism != completions || !replicated.is_indexed()) return std::nullopt;
  if (job.parallelism == *parallelism && job.completions == completions) return std::nullopt;
  return patch(
      job, {{"spec", JsonObject{{"parallelism", *parallelism}, {"completions", *completions}}}});
}

}  // namespace grapnel::jobset
