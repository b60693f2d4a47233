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

// The merge patch that makes one object of the other.
JsonObject difference(const Json& have, const Json* want) {
  JsonObject patch;
  if (have.is_object()) {
    for (const auto& [key, value] : have.get_object()) {
      if (want == nullptr || find(*want, key) == nullptr) patch[key] = nullptr;
    }
  }
  if (want != nullptr && want->is_object()) {
    for (const auto& [key, value] : want->get_object()) {
      const Json* before = find(have, key);
      if (before == nullptr || !equal(*before, value)) patch[key] = value;
    }
  }
  return patch;
}

// A merge patch replaces lists whole.
void replace_list(JsonObject& target, std::string_view key, const Json& have, const Json* want) {
  const auto count = [](const Json* list) {
    return list != nullptr && list->is_array() ? list->get_array().size() : 0;
  };
  if (count(want) == 0 && count(&have) == 0) return;
  if (count(want) == 0) {
    target[key] = nullptr;
  } else if (!equal(have, *want)) {
    target[key] = *want;
  }
}

}  // namespace

runtime::Patch suspend_job(const api::Job& job) {
  return patch(job, {{"spec", JsonObject{{"suspend", true}}}});
}

runtime::Patch forget_start(const api::Job& job) {
  return patch(job, {{"status", JsonObject{{"startTime", nullptr}}}}, "status");
}

runtime::Patch resume_job(const api::Job& job, const JobBuilder& builder) {
  JsonObject metadata;
  if (const Json* pod = builder.replicated().pod_template()) {
    copy(metadata, "labels", at(*pod, "metadata", "labels"));
    copy(metadata, "annotations", at(*pod, "metadata", "annotations"));
  }
  const Json wanted = builder.scheduling(job.place->index);
  JsonObject pod_spec;
  auto selector = difference(job.node_selector, find(wanted, "nodeSelector"));
  if (!selector.empty()) pod_spec["nodeSelector"] = std::move(selector);
  replace_list(pod_spec, "tolerations", job.tolerations, find(wanted, "tolerations"));
  replace_list(pod_spec, "schedulingGates", job.scheduling_gates, find(wanted, "schedulingGates"));
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
