#include "operators/jobset/defaults.h"

#include <fmt/format.h>

namespace grapnel::jobset {
namespace {

void set_default(JsonObject& object, std::string_view key, Json value) {
  Json& member = object[key];
  if (member.is_null()) member = std::move(value);
}

// Templates of the wrong shape are left to validation.
void default_job_template(Json& job_template) {
  if (!job_template.is_object()) return;
  Json* spec = job_template.as_object().if_contains("spec");
  if (spec == nullptr || !spec->is_object()) return;
  set_default(spec->as_object(), "completionMode", "Indexed");
  Json* pod = spec->as_object().if_contains("template");
  Json* pod_spec =
      pod != nullptr && pod->is_object() ? pod->as_object().if_contains("spec") : nullptr;
  if (pod_spec != nullptr && pod_spec->is_object()) {
    set_default(pod_spec->as_object(), "restartPolicy", "OnFailure");
  }
}

std::string default_rule_name(size_t index) {
  return fmt::format("failurePolicyRule{}", index);
}

template <class F>
void for_each_object(JsonObject& parent, std::string_view key, F&& f) {
  Json* list = parent.if_contains(key);
  if (list == nullptr || !list->is_array()) return;
  for (size_t i = 0; i < list->as_array().size(); ++i) {
    Json& item = list->as_array()[i];
    if (item.is_object()) f(i, item.as_object());
  }
}

void default_spec(JsonObject& spec) {
  set_default(spec, "successPolicy", JsonObject{{"operator", "All"}});
  set_default(spec, "startupPolicy", JsonObject{{"startupPolicyOrder", "AnyOrder"}});
  set_default(spec, "network", JsonObject());
  if (spec["network"].is_object()) {
    set_default(spec["network"].as_object(), "enableDNSHostnames", true);
    set_default(spec["network"].as_object(), "publishNotReadyAddresses", true);
  }
  for_each_object(spec, "replicatedJobs", [](size_t, JsonObject& replicated) {
    set_default(replicated, "groupName", "default");
    set_default(replicated, "replicas", 1);
    if (Json* job = replicated.if_contains("template")) default_job_template(*job);
  });
  if (Json* policy = spec.if_contains("failurePolicy"); policy && policy->is_object()) {
    set_default(policy->as_object(), "restartStrategy", "Recreate");
    for_each_object(policy->as_object(), "rules", [](size_t index, JsonObject& rule) {
      set_default(rule, "name", Json(default_rule_name(index)));
    });
  }
  for_each_object(spec, "volumeClaimPolicies", [](size_t, JsonObject& policy) {
    set_default(policy, "retentionPolicy", JsonObject{{"whenDeleted", "Delete"}});
  });
}

}  // namespace

api::JobSet defaulted(api::JobSet jobset) {
  for (auto& replicated : jobset.spec.replicated_jobs) {
    default_job_template(replicated.job_template);
  }
  if (jobset.spec.failure_policy) {
    auto& rules = jobset.spec.failure_policy->rules;
    for (size_t i = 0; i < rules.size(); ++i) {
      if (rules[i].name.empty()) rules[i].name = default_rule_name(i);
    }
  }
  return jobset;
}

Json defaulted_object(Json object) {
  if (!object.is_object()) return object;
  Json* spec = object.as_object().if_contains("spec");
  if (spec != nullptr && spec->is_object()) default_spec(spec->as_object());
  return object;
}

}  // namespace grapnel::jobset
