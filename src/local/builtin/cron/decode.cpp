#include "local/builtin/cron/plan.h"

namespace grapnel::local {
namespace {

std::string text_at(JsonView value, std::string_view key) {
  const auto found = value.find(key);
  return std::string(found ? found->as_string().value_or("") : "");
}

std::optional<int64_t> int_at(JsonView value, std::string_view key) {
  const auto found = value.find(key);
  return found ? found->as_int() : std::nullopt;
}

}  // namespace

bool CronJob::operator==(const CronJob& other) const {
  return meta == other.meta && schedule == other.schedule && time_zone == other.time_zone &&
         concurrency == other.concurrency &&
         starting_deadline_seconds == other.starting_deadline_seconds && suspend == other.suspend &&
         successes_kept == other.successes_kept && failures_kept == other.failures_kept &&
         equal(job_template, other.job_template) && equal(status, other.status);
}

Result<CronJob> decode_cron_job(JsonView object) {
  auto meta = kube::decode_meta(object);
  if (!meta) return fail(meta.error());
  CronJob cron{.meta = std::move(*meta)};
  if (const auto spec = object.find("spec")) {
    cron.schedule = text_at(*spec, "schedule");
    cron.time_zone = text_at(*spec, "timeZone");
    if (auto policy = text_at(*spec, "concurrencyPolicy"); !policy.empty()) {
      cron.concurrency = policy;
    }
    cron.starting_deadline_seconds = int_at(*spec, "startingDeadlineSeconds");
    if (const auto suspend = spec->find("suspend")) {
      cron.suspend = suspend->as_bool().value_or(false);
    }
    cron.successes_kept = int_at(*spec, "successfulJobsHistoryLimit").value_or(3);
    cron.failures_kept = int_at(*spec, "failedJobsHistoryLimit").value_or(1);
    if (const auto job = spec->find("jobTemplate")) cron.job_template = job->to_json();
  }
  const auto status = object.find("status");
  cron.status = status ? status->to_json() : Json(JsonObject());
  return cron;
}

Result<CronChild> decode_cron_child(JsonView object) {
  auto meta = kube::decode_meta(object);
  if (!meta) return fail(meta.error());
  CronChild job{.meta = std::move(*meta)};
  const auto status = object.find("status");
  if (!status) return job;
  job.started = parse_time(text_at(*status, "startTime"));
  job.completed = parse_time(text_at(*status, "completionTime"));
  if (const auto conditions = status->find("conditions")) {
    conditions->for_each_element([&](size_t, JsonView condition) {
      if (text_at(condition, "status") != "True") return true;
      const auto type = text_at(condition, "type");
      if (type == "Complete") job.end = CronChild::End::kComplete;
      if (type == "Failed") job.end = CronChild::End::kFailed;
      return true;
    });
  }
  return job;
}

}  // namespace grapnel::local
