#include <fmt/format.h>

#include "base/strings.h"
#include "document/selector.h"
#include "local/apiserver/fields.h"
#include "local/apiserver/kinds/kinds.h"

namespace grapnel::local::kinds {
namespace {

constexpr const char* kJobName = "batch.kubernetes.io/job-name";
constexpr const char* kControllerUid = "batch.kubernetes.io/controller-uid";

void template_defaults(JsonObject& spec) {
  JsonObject& pod_template = ensure_object(spec, "template");
  pod_spec_defaults(ensure_object(pod_template, "spec"));
}

void nonnegative(const Json& spec, const char* key, const std::string& path, FieldErrors& errors) {
  const Json* value = find(spec, key);
  if (is_set(value) && int_or(value) < 0) {
    errors.invalid_value(fmt::format("{}.{}", path, key), *value,
                         "must be greater than or equal to 0");
  }
}

void immutable(const Json& now, const Json& old, const char* key, const std::string& path,
               FieldErrors& errors) {
  const Json* after = find(now, key);
  const Json* before = find(old, key);
  const bool same = is_set(after) == is_set(before) && (!is_set(after) || equal(*after, *before));
  if (!same) {
    errors.invalid_value(fmt::format("{}.{}", path, key), after == nullptr ? Json() : *after,
                         "field is immutable");
  }
}

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
    errors.not_supported(path + ".completionMode", mode, {"Indexed", "NonIndexed"});
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

const Json& spec_of(const Json& object) {
  static const Json kNothing = JsonObject();
  const Json* spec = find(object, "spec");
  return spec == nullptr ? kNothing : *spec;
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
  JsonObject& labels =
      ensure_object(ensure_object(ensure_object(spec, "template"), "metadata"), "labels");
  for (const char* key : {"job-name", kJobName}) set_default(labels, key, Json(name));
  for (const char* key : {"controller-uid", kControllerUid}) set_default(labels, key, Json(uid));
  set_default(ensure_object(ensure_object(spec, "selector"), "matchLabels"), kControllerUid,
              Json(uid));
}

void job_validate(const Json& job, FieldErrors& errors) {
  job_spec_validate(spec_of(job), "spec", errors);
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
  if (string_or(find(spec, "schedule")).empty()) errors.required("spec.schedule");
  const std::string_view policy = string_or(find(spec, "concurrencyPolicy"));
  if (policy != "Allow" && policy != "Forbid" && policy != "Replace") {
    errors.not_supported("spec.concurrencyPolicy", policy, {"Allow", "Forbid", "Replace"});
  }
  const Json* job = at(spec, "jobTemplate", "spec");
  pod_template_validate(job == nullptr ? nullptr : find(*job, "template"),
                        "spec.jobTemplate.spec.template", errors);
}

void deployment_defaults(JsonObject& deployment) {
  JsonObject& spec = ensure_object(deployment, "spec");
  set_default(spec, "replicas", 1);
  JsonObject& strategy = ensure_object(spec, "strategy");
  set_default(strategy, "type", "RollingUpdate");
  if (string_or(strategy.if_contains("type")) == "RollingUpdate") {
    JsonObject& rolling = ensure_object(strategy, "rollingUpdate");
    set_default(rolling, "maxUnavailable", "25%");
    set_default(rolling, "maxSurge", "25%");
  }
  set_default(spec, "revisionHistoryLimit", 10);
  set_default(spec, "progressDeadlineSeconds", 600);
  template_defaults(spec);
}

void replica_set_defaults(JsonObject& replica_set) {
  JsonObject& spec = ensure_object(replica_set, "spec");
  set_default(spec, "replicas", 1);
  template_defaults(spec);
}

void stateful_set_defaults(JsonObject& stateful_set) {
  JsonObject& spec = ensure_object(stateful_set, "spec");
  set_default(spec, "podManagementPolicy", "OrderedReady");
  JsonObject& strategy = ensure_object(spec, "updateStrategy");
  if (string_or(strategy.if_contains("type")).empty()) {
    set_default(strategy, "type", "RollingUpdate");
    set_default(strategy, "rollingUpdate", JsonObject());
  }
  if (JsonObject* rolling = object_at(strategy, "rollingUpdate")) {
    set_default(*rolling, "partition", 0);
  }
  JsonObject& retention = ensure_object(spec, "persistentVolumeClaimRetentionPolicy");
  set_default(retention, "whenDeleted", "Retain");
  set_default(retention, "whenScaled", "Retain");
  set_default(spec, "replicas", 1);
  set_default(spec, "revisionHistoryLimit", 10);
  template_defaults(spec);
}

void daemon_set_defaults(JsonObject& daemon_set) {
  JsonObject& spec = ensure_object(daemon_set, "spec");
  JsonObject& strategy = ensure_object(spec, "updateStrategy");
  set_default(strategy, "type", "RollingUpdate");
  if (string_or(strategy.if_contains("type")) == "RollingUpdate") {
    JsonObject& rolling = ensure_object(strategy, "rollingUpdate");
    set_default(rolling, "maxUnavailable", 1);
    set_default(rolling, "maxSurge", 0);
  }
  set_default(spec, "revisionHistoryLimit", 10);
  template_defaults(spec);
}

void selector_workload_validate(const Json& object, FieldErrors& errors) {
  const Json& spec = spec_of(object);
  nonnegative(spec, "replicas", "spec", errors);
  const Json* selector = find(spec, "selector");
  if (!is_set(selector)) {
    errors.required("spec.selector");
  } else {
    const auto parsed = Selector::from_label_selector(*selector);
    const Json* labels = at(spec, "template", "metadata", "labels");
    if (!parsed) {
      errors.invalid_value("spec.selector", *selector, parsed.error().message);
    } else if (parsed->empty()) {
      errors.invalid_value("spec.selector", *selector, "empty selector is invalid for deployment");
    } else if (!parsed->matches(labels == nullptr ? nullptr : labels->if_object())) {
      errors.invalid_value("spec.template.metadata.labels", labels == nullptr ? Json() : *labels,
                           "`selector` does not match template `labels`");
    }
  }
  pod_template_validate(find(spec, "template"), "spec.template", errors);
  const std::string_view restart = string_or(at(spec, "template", "spec", "restartPolicy"));
  if (restart != "Always") {
    errors.not_supported("spec.template.spec.restartPolicy", restart, {"Always"});
  }
}

void selector_workload_validate_update(const Json& object, const Json& old, FieldErrors& errors) {
  selector_workload_validate(object, errors);
  immutable(spec_of(object), spec_of(old), "selector", "spec", errors);
}

}  // namespace grapnel::local::kinds
