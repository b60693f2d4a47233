// Starts the Jobs of a CronJob when their time comes.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "document/json.h"
#include "document/json_view.h"
#include "kube/meta.h"
#include "runtime/plan.h"

namespace grapnel::local {

struct CronJob {
  kube::Meta meta;
  std::string schedule;
  std::string time_zone;
  std::string concurrency = "Allow";  // Forbid, Replace
  std::optional<int64_t> starting_deadline_seconds;
  bool suspend = false;
  int64_t successes_kept = 3;
  int64_t failures_kept = 1;
  Json job_template;
  Json status;
  bool operator==(const CronJob& other) const;
};

// A Job that a CronJob controls.
struct CronChild {
  kube::Meta meta;
  std::optional<Time> started;
  std::optional<Time> completed;
  enum class End { kNone, kComplete, kFailed } end = End::kNone;
  bool operator==(const CronChild&) const = default;
};

Result<CronJob> decode_cron_job(JsonView object);
Result<CronChild> decode_cron_child(JsonView object);

struct CronObserved {
  const CronJob& cron;
  std::vector<const CronChild*> jobs;  // that it controls
};
runtime::Plan plan(const CronObserved& observed, Time now);

}  // namespace grapnel::local
