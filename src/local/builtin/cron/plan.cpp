#include "local/builtin/cron/plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>

#include "base/schedule.h"

namespace grapnel::local {
namespace {

using End = CronChild::End;
using runtime::Event;
using runtime::ObjectRef;
using runtime::Plan;

constexpr int kMostMissed = 100;

ObjectRef ref(const CronJob& cron) {
  return {&kube::kinds::kCronJob, cron.meta.key, cron.meta.uid};
}
ObjectRef ref(const CronChild& job) {
  return {&kube::kinds::kJob, job.meta.key, job.meta.uid};
}

class Round {
 public:
  Round(const CronObserved& o, Time now) : cron_(o.cron), now_(now), status_(o.cron.status) {
    if (!status_.is_object()) status_ = JsonObject();
    for (const auto* job : o.jobs) {
      (job->end == End::kNone ? active_ : ended_).push_back(job);
    }
  }

  Plan run() {
    note_ended();
    note_active();
    if (!cron_.meta.is_being_deleted() && !cron_.suspend) follow_schedule();
    plan_.set_status(ref(cron_), cron_.status, status_);
    return std::move(plan_);
  }

 private:
  void emit(Event::Type type, std::string reason, std::string message) {
    plan_.emit(ref(cron_), type, std::move(reason), std::move(message));
  }

  bool was_active(const CronChild& job) const {
    const Json* list = find(cron_.status, "active");
    return list != nullptr && list->is_array() &&
           std::ranges::any_of(list->as_array(), [&](const Json& one) {
             return string_or(find(one, "uid")) == job.meta.uid.text();
           });
  }

  // Jobs that have ended are reported once, and only the newest of them are kept.
  void note_ended() {
    std::ranges::sort(ended_, {}, [](const CronChild* job) {
      return std::tuple(job->started.value_or(job->meta.created), job->meta.name());
    });
    for (const auto* job : ended_) {
      const bool complete = job->end == End::kComplete;
      if (was_active(*job)) {
        emit(Event::Type::kNormal, "SawCompletedJob",
             fmt::format("Saw completed job: {}, condition: {}", job->meta.name(),
                         complete ? "Complete" : "Failed"));
      }
      if (complete && job->completed) note_time("lastSuccessfulTime", *job->completed);
    }
    forget(End::kComplete, cron_.successes_kept);
    forget(End::kFailed, cron_.failures_kept);
  }

  void note_time(std::string_view field, Time time) {
    const auto known = parse_time(string_or(find(status_, field)));
    if (!known || *known < time) status_.as_object()[field] = format_time(time);
  }

  void forget(End end, int64_t kept) {
    auto left = std::ranges::count(ended_, end, &CronChild::end);
    for (const auto* job : ended_) {
      if (job->end != end || left-- <= kept) continue;
      if (job->meta.is_being_deleted()) continue;
      plan_.add(runtime::Delete{ref(*job)});
      emit(Event::Type::kNormal, "SuccessfulDelete",
           fmt::format("Deleted job {}", job->meta.name()));
    }
  }

  void note_active() {
    JsonArray list;
    for (const auto* job : active_) {
      list.push_back({{"kind", "Job"},
                      {"namespace", job->meta.ns()},
                      {"name", job->meta.name()},
                      {"uid", job->meta.uid.text()},
                      {"apiVersion", "batch/v1"}});
    }
    if (list.empty()) {
      status_.as_object().erase("active");
    } else {
      status_.as_object()["active"] = std::move(list);
    }
  }

  void follow_schedule() {
    const auto schedule = Schedule::parse(cron_.schedule);
    if (!schedule) {
      return emit(
          Event::Type::kWarning, "UnparseableSchedule",
          fmt::format("unparseable schedule: {} : {}", cron_.schedule, schedule.error().message));
    }
    const auto zone = cron_.time_zone.empty() ? TimeZone::utc() : TimeZone::find(cron_.time_zone);
    if (!zone) {
      return emit(Event::Type::kWarning, "UnknownTimeZone",
                  fmt::format("invalid timeZone: {}: unknown time zone {}", cron_.time_zone,
                              cron_.time_zone));
    }
    if (const auto due = last_due(*schedule, *zone)) start(*due);
    if (const auto next = schedule->next_after(now_, *zone)) plan_.look_again_in(*next - now_);
  }

  // The latest moment of the schedule that has come and has no Job yet.
  std::optional<Time> last_due(const Schedule& schedule, const TimeZone& zone) {
    Time since =
        parse_time(string_or(find(cron_.status, "lastScheduleTime"))).value_or(cron_.meta.created);
    if (cron_.starting_deadline_seconds) {
      since = std::max(since, now_ - seconds(*cron_.starting_deadline_seconds));
    }
    std::optional<Time> due;
    int missed = 0;
    for (auto next = schedule.next_after(since, zone); next && *next <= now_;
         next = schedule.next_after(*next, zone)) {
      due = next;
      if (++missed > kMostMissed) {
        // Too far behind to count: from the last hour or so, if there is anything in it.
        emit(Event::Type::kWarning, "TooManyMissedTimes",
             "too many missed start times. Set or decrease .spec.startingDeadlineSeconds or check "
             "clock skew");
        break;
      }
    }
    if (missed <= kMostMissed) return due;
    return latest_before_now(schedule, zone);
  }

  std::optional<Time> latest_before_now(const Schedule& schedule, const TimeZone& zone) const {
    for (Duration back = minutes(1); back < hours(24 * 366); back *= 2) {
      std::optional<Time> found;
      for (auto next = schedule.next_after(now_ - back, zone); next && *next <= now_;
           next = schedule.next_after(*next, zone)) {
        found = next;
      }
      if (found) return found;
    }
    return std::nullopt;
  }

  void start(Time due) {
    const std::string name = fmt::format("{}-{}", cron_.meta.name().substr(0, 52),
                                         duration_cast<minutes>(due.time_since_epoch()).count());
    if (cron_.concurrency == "Forbid" && !active_.empty()) {
      return emit(Event::Type::kNormal, "JobAlreadyActive",
                  "Not starting job because prior execution is running and concurrency policy is "
                  "Forbid");
    }
    if (cron_.concurrency == "Replace") {
      for (const auto* job : active_) {
        if (job->meta.name() != name) plan_.add(runtime::Delete{ref(*job)});
      }
      plan_.then();
    }
    plan_.add(runtime::Create{&kube::kinds::kJob, job_of(name, due)});
    status_.as_object()["lastScheduleTime"] = format_time(due);
    emit(Event::Type::kNormal, "SuccessfulCreate", fmt::format("Created job {}", name));
  }

  Json job_of(const std::string& name, Time due) const {
    Json job = cron_.job_template;
    if (!job.is_object()) job = JsonObject();
    auto& root = job.as_object();
    root["apiVersion"] = "batch/v1";
    root["kind"] = "Job";
    auto& metadata = ensure_object(root, "metadata");
    metadata["name"] = name;
    metadata["namespace"] = cron_.meta.ns();
    ensure_object(metadata, "annotations")["batch.kubernetes.io/cronjob-scheduled-timestamp"] =
        format_time(due);
    metadata["ownerReferences"] = JsonArray{JsonObject{{"apiVersion", "batch/v1"},
                                                       {"kind", "CronJob"},
                                                       {"name", cron_.meta.name()},
                                                       {"uid", cron_.meta.uid.text()},
                                                       {"controller", true},
                                                       {"blockOwnerDeletion", true}}};
    return job;
  }

  const CronJob& cron_;
  Time now_;
  Json status_;
  std::vector<const CronChild*> active_;
  std::vector<const CronChild*> ended_;
  Plan plan_;
};

}  // namespace

Plan plan(const CronObserved& o, Time now) {
  return Round(o, now).run();
}

}  // namespace grapnel::local
