// Jobs and cron jobs.

#include <fmt/format.h>

#include <algorithm>

#include "base/strings.h"
#include "base/time.h"
#include "local/apiserver/fields.h"
#include "local/apiserver/kinds/kinds.h"

namespace grapnel::local::kinds {
namespace {

constexpr const char* kJobName = "batch.kubernetes.io/job-name";
constexpr const char* kControllerUid = "batch.kubernetes.io/controller-uid";

void job_spec_defaults(JsonObject& spec) {
  const bool completions = is_set(spec.if_contains("completions"));
  const bool parallelism = is_set(spec.if_contains("parallelism"));
  if (!completions && !parallelism) set_default(spec, "completions", 1);
  set_default(spec, "parallelism", 1);
  const bool per_index = is_set(spec.if_contains("backoffLimitPerIndex"));
  set_default(spec, "backoffLimit", per_index ? INT32_MAX : 6);
  set_default(spec, "completionMode", "NonIndexed");
  set_default(spec, "suspend", false);
  JsonObject* policy = object_at(spec, "podFailurePolicy");
  set_default(spec, "podReplacementPolicy", policy == nullptr ? "TerminatingOrFailed" : "Failed");
  set_default(spec, "manualSelector", false);
  JsonArray* rules = policy == nullptr ? nullptr : array_at(*policy, "rules");
  if (rules != nullptr) {
    for (Json& rule : *rules) {
      JsonObject* object = rule.if_object();
      JsonArray* conditions = object == nullptr ? nullptr : array_at(*object, "onPodConditions");
      if (conditions == nullptr) continue;
      for (Json& condition : *conditions) {
        if (JsonObject* one = condition.if_object()) set_default(*one, "status", "True");
      }
    }
  }
  template_defaults(spec);
}

// An indexed job names its pods after itself and their index.
void validate_pod_names(const Json& job, FieldErrors& errors) {
  const Json& spec = spec_of(job);
  if (string_or(find(spec, "completionMode")) != "Indexed") return;
  const int64_t last = std::max<int64_t>(int_or(find(spec, "completions")) - 1, 0);
  const std::string pod = fmt::format("{}-{}", string_or(at(job, "metadata", "name")), last);
  if (const std::string why = why_not_dns1123_label(pod); !why.empty()) {
    errors.invalid("metadata.name", pod,
                   "will not able to create pod with invalid DNS label: " + why);
  }
}

void validate_managed_by(const Json& spec, const std::string& path, FieldErrors& errors) {
  const std::string_view manager = string_or(find(spec, "managedBy"));
  if (manager.empty()) return;
  if (manager.find('/') == std::string_view::npos) {
    errors.invalid(path + ".managedBy", manager,
                   "must be a domain-prefixed path (such as \"acme.io/foo\")");
  }
}

void validate_exit_codes(const Json& codes, const std::string& path, FieldErrors& errors) {
  const std::string_view op = string_or(find(codes, "operator"));
  if (op != "In" && op != "NotIn") {
    errors.not_supported(path + ".operator", op, {"In", "NotIn"});
  }
  const Json* values = find(codes, "values");
  if (values == nullptr || !values->is_array() || values->as_array().empty()) {
    errors.invalid(path + ".values", "", "at least one value is required");
    return;
  }
  for (size_t i = 0; i < values->as_array().size(); ++i) {
    const Json& value = values->as_array()[i];
    if (op == "In" && int_or(&value) == 0) {
      errors.invalid_value(fmt::format("{}.values[{}]", path, i), value,
                           "must not be 0 for the In operator");
    }
  }
}

void validate_failure_rule(const Json& rule, bool per_index, const std::string& path,
                           FieldErrors& errors) {
  const std::string_view action = string_or(find(rule, "action"));
  if (action == "FailIndex" && !per_index) {
    errors.invalid(path + ".action", action, "requires the backoffLimitPerIndex to be set");
  } else if (action != "FailJob" && action != "Ignore" && action != "Count" &&
             action != "FailIndex") {
    errors.not_supported(path + ".action", action, {"Count", "FailIndex", "FailJob", "Ignore"});
  }
  const Json* codes = find(rule, "onExitCodes");
  const Json* conditions = find(rule, "onPodConditions");
  const bool has_conditions =
      is_set(conditions) && conditions->is_array() && !conditions->as_array().empty();
  if (is_set(codes)) validate_exit_codes(*codes, path + ".onExitCodes", errors);
  if (is_set(codes) == has_conditions) {
    errors.add(Cause{.field = path,
                     .message = is_set(codes) ? "Invalid value: specifying both OnExitCodes and "
                                                "OnPodConditions is not supported"
                                              : "Invalid value: specifying one of OnExitCodes and "
                                                "OnPodConditions is required",
                     .reason = "FieldValueInvalid"});
  }
}

void validate_failure_policy(const Json& spec, const std::string& path, FieldErrors& errors) {
  const Json* rules = at(spec, "podFailurePolicy", "rules");
  if (rules == nullptr || !rules->is_array()) return;
  const bool per_index = is_set(find(spec, "backoffLimitPerIndex"));
  size_t i = 0;
  for (const Json& rule : rules->as_array()) {
    validate_failure_rule(rule, per_index, fmt::format("{}.podFailurePolicy.rules[{}]", path, i++),
                          errors);
  }
}

void validate_success_policy(const Json& spec, const std::string& path, FieldErrors& errors) {
  const Json* policy = find(spec, "successPolicy");
  if (!is_set(policy)) return;
  if (string_or(find(spec, "completionMode")) != "Indexed") {
    errors.invalid_value(path + ".successPolicy", *policy, "requires indexed completion mode");
    return;
  }
  const Json* rules = find(*policy, "rules");
  if (rules == nullptr || !rules->is_array() || rules->as_array().empty()) {
    errors.required(path + ".successPolicy.rules",
                    "at least one rules must be specified when the successPolicy is specified");
  }
}

void job_spec_validate(const Json& spec, const std::string& path, FieldErrors& errors) {
  for (const char* key : {"parallelism", "completions", "activeDeadlineSeconds", "backoffLimit",
                          "ttlSecondsAfterFinished", "backoffLimitPerIndex", "maxFailedIndexes"}) {
    nonnegative(spec, key, path, errors);
  }
  const bool per_index = is_set(find(spec, "backoffLimitPerIndex"));
  if (is_set(find(spec, "maxFailedIndexes")) && !per_index) {
    errors.required(path + ".backoffLimitPerIndex", "when maxFailedIndexes is specified");
  }
  const std::string_view mode = string_or(find(spec, "completionMode"));
  if (mode != "NonIndexed" && mode != "Indexed") {
    errors.not_supported(path + ".completionMode", mode, {"NonIndexed", "Indexed"});
  }
  if (mode == "Indexed") {
    if (!is_set(find(spec, "completions"))) {
      errors.required(path + ".completions", "when completion mode is Indexed");
    }
    const Json* parallelism = find(spec, "parallelism");
    if (int_or(parallelism) > 100000) {
      errors.invalid_value(path + ".parallelism", *parallelism,
                           "must be less than or equal to 100000 when completion mode is Indexed");
    }
  } else {
    for (const char* key : {"backoffLimitPerIndex", "maxFailedIndexes"}) {
      if (const Json* value = find(spec, key); is_set(value)) {
        errors.invalid_value(fmt::format("{}.{}", path, key), *value,
                             "requires indexed completion mode");
      }
    }
  }
  validate_managed_by(spec, path, errors);
  validate_failure_policy(spec, path, errors);
  validate_success_policy(spec, path, errors);
  pod_template_validate(find(spec, "template"), path + ".template", errors);
  const std::string_view restart = string_or(at(spec, "template", "spec", "restartPolicy"));
  const std::string where = path + ".template.spec.restartPolicy";
  if (restart.empty() || restart == "Always") {
    errors.required(where, "valid values: \"OnFailure\", \"Never\"");
  } else if (restart != "Never" && restart != "OnFailure") {
    errors.not_supported(where, restart, {"Never", "OnFailure"});
  } else if (is_set(find(spec, "podFailurePolicy")) && restart != "Never") {
    errors.invalid(where, restart,
                   "only \"Never\" is supported when podFailurePolicy is specified");
  }
}

// Five fields, or a word for a common schedule.
bool is_schedule(std::string_view text) {
  if (text.starts_with("@every ")) return parse_go_duration(text.substr(7)).has_value();
  for (const char* word :
       {"@yearly", "@annually", "@monthly", "@weekly", "@daily", "@midnight", "@hourly"}) {
    if (text == word) return true;
  }
  size_t fields = 0;
  for (const std::string_view field : split(text, ' ')) {
    if (field.empty()) continue;
    ++fields;
    const bool known = std::all_of(field.begin(), field.end(), [](char c) {
      return std::string_view("*/,-?").find(c) != std::string_view::npos ||
             (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
    });
    if (!known) return false;
  }
  return fields == 5;
}

}  // namespace

void job_defaults(JsonObject& job) {
  JsonObject& spec = ensure_object(job, "spec");
  job_spec_defaults(spec);
  const Json* labels = at(spec["template"], "metadata", "labels");
  const Json* own = at_in(job, "metadata", "labels");
  if (labels != nullptr && labels->is_object() && !labels->as_object().empty() &&
      (own == nullptr || !own->is_object() || own->as_object().empty())) {
    const Json copy = *labels;
    ensure_object(job, "metadata")["labels"] = copy;
  }
}

void job_prepare_create(JsonObject& job) {
  job["status"] = JsonObject();
  JsonObject& spec = ensure_object(job, "spec");
  if (bool_or(spec.if_contains("manualSelector"))) return;
  const Json meta = job["metadata"];
  const std::string name(string_or(find(meta, "name")));
  const std::string uid(string_or(find(meta, "uid")));
  JsonObject& meta_labels = ensure_object(ensure_object(job, "metadata"), "labels");
  JsonObject& labels =
      ensure_object(ensure_object(ensure_object(spec, "template"), "metadata"), "labels");
  // A job without labels of its own has its pods'.
  const bool shares_labels = equal(Json(meta_labels), Json(labels));
  for (const char* key : {"job-name", kJobName}) set_default(labels, key, Json(name));
  for (const char* key : {"controller-uid", kControllerUid}) set_default(labels, key, Json(uid));
  if (shares_labels) meta_labels = labels;
  if (meta_labels.empty()) ensure_object(job, "metadata").erase("labels");
  if (is_set(spec.if_contains("selector"))) return;  // validation says that it cannot
  set_default(ensure_object(ensure_object(spec, "selector"), "matchLabels"), kControllerUid,
              Json(uid));
}

void job_validate(const Json& job, FieldErrors& errors) {
  const Json& spec = spec_of(job);
  validate_pod_names(job, errors);
  job_spec_validate(spec, "spec", errors);
  const std::string_view uid = string_or(at(job, "metadata", "uid"));
  const Json* owner = at(spec, "selector", "matchLabels", kControllerUid);
  const Json* selector = find(spec, "selector");
  if (!bool_or(find(spec, "manualSelector")) && is_set(selector) && string_or(owner) != uid) {
    errors.invalid_value("spec.selector", *selector, "`selector` not auto-generated");
  }
}

void job_status_validate(const Json& job, FieldErrors& errors) {
  static const Json kNothing = JsonObject();
  const Json* status = find(job, "status");
  for (const char* key : {"active", "succeeded", "failed", "ready", "terminating"}) {
    nonnegative(status == nullptr ? kNothing : *status, key, "status", errors);
  }
}

void job_validate_update(const Json& job, const Json& old, FieldErrors& errors) {
  const Json& now = spec_of(job);
  const Json& before = spec_of(old);
  job_validate(job, errors);
  // An indexed job may be resized when completions and parallelism move together.
  const Json* completions = find(now, "completions");
  const bool elastic = string_or(find(now, "completionMode")) == "Indexed" && is_set(completions) &&
                       is_set(find(before, "completions")) &&
                       int_or(completions) == int_or(find(now, "parallelism")) &&
                       int_or(find(before, "completions")) == int_or(find(before, "parallelism"));
  if (!elastic) immutable(now, before, "completions", "spec", errors);
  immutable(now, before, "selector", "spec", errors);
  // Until it has started, a suspended job's pods may still be told where to run.
  const bool may_steer =
      bool_or(find(before, "suspend")) && !is_set(at(old, "status", "startTime"));
  if (may_steer) {
    Json normal = now;
    Json was = before;
    for (Json* side : {&normal, &was}) {
      JsonObject* spec = side->if_object();
      JsonObject* pod_template = spec == nullptr ? nullptr : object_at(*spec, "template");
      if (pod_template == nullptr) continue;
      pod_template->erase("metadata");
      if (JsonObject* pod = object_at(*pod_template, "spec")) {
        for (const char* key : {"nodeSelector", "affinity", "tolerations", "schedulingGates"}) {
          pod->erase(key);
        }
      }
    }
    if (!equal(*find(normal, "template"), *find(was, "template"))) {
      immutable(now, before, "template", "spec", errors);
    }
  } else {
    immutable(now, before, "template", "spec", errors);
  }
  for (const char* key : {"completionMode", "podFailurePolicy", "backoffLimitPerIndex", "managedBy",
                          "successPolicy"}) {
    immutable(now, before, key, "spec", errors);
  }
}

void cron_job_defaults(JsonObject& cron_job) {
  JsonObject& spec = ensure_object(cron_job, "spec");
  set_default(spec, "concurrencyPolicy", "Allow");
  set_default(spec, "suspend", false);
  set_default(spec, "successfulJobsHistoryLimit", 3);
  set_default(spec, "failedJobsHistoryLimit", 1);
  JsonObject& job = ensure_object(ensure_object(spec, "jobTemplate"), "spec");
  template_defaults(job);
}

void cron_job_validate(const Json& cron_job, FieldErrors& errors) {
  const Json& spec = spec_of(cron_job);
  const std::string_view schedule = string_or(find(spec, "schedule"));
  if (schedule.empty()) {
    errors.required("spec.schedule");
  } else if (!is_schedule(schedule)) {
    errors.invalid("spec.schedule", schedule, "it is not a cron schedule");
  }
  const std::string_view policy = string_or(find(spec, "concurrencyPolicy"));
  if (policy != "Allow" && policy != "Forbid" && policy != "Replace") {
    errors.not_supported("spec.concurrencyPolicy", policy, {"Allow", "Forbid", "Replace"});
  }
  const Json* job = at(spec, "jobTemplate", "spec");
  pod_template_validate(job == nullptr ? nullptr : find(*job, "template"),
                        "spec.jobTemplate.spec.template", errors);
}

}  // namespace grapnel::local::kinds
