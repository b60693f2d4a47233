#include "local/builtin/cron/plan.h"

#include <gtest/gtest.h>

#include <deque>

namespace grapnel::local {
namespace {

const Time kNow = *parse_time("2026-01-01T12:00:30Z");

struct Child {
  std::string name;
  CronChild::End end = CronChild::End::kNone;
  std::string started = "2026-01-01T11:00:00Z";
};

struct Case {
  std::string name;
  std::string spec = R"({"schedule":"0 * * * *"})";
  std::string status = "{}";
  std::vector<Child> jobs;
  std::string writes;
  std::string last_schedule;                         // in the status patch
  std::optional<int64_t> look_again = 59 * 60 + 30;  // seconds
  std::string event;                                 // the first one's reason
};

class CronPlan : public testing::TestWithParam<Case> {};

TEST_P(CronPlan, Answers) {
  const Case& c = GetParam();
  Json object = *parse_json(R"({"metadata":{"name":"c","namespace":"ns","uid":"u",
      "creationTimestamp":"2026-01-01T11:30:00Z"}})");
  object.as_object()["spec"] = *parse_json(c.spec);
  object.as_object()["status"] = *parse_json(c.status);
  const auto cron = decode_cron_job(object);
  ASSERT_TRUE(cron);
  CronObserved observed{.cron = *cron};
  std::deque<CronChild> jobs;
  for (const auto& child : c.jobs) {
    CronChild job{.started = parse_time(child.started), .end = child.end};
    job.meta.key = {Interned("ns"), child.name};
    job.meta.uid = kube::Uid("uid-" + child.name);
    jobs.push_back(job);
    observed.jobs.push_back(&jobs.back());
  }
  const auto p = plan(observed, kNow);
  std::string writes;
  for (const auto& stage : p.stages) {
    for (const auto& write : stage) writes += runtime::describe(write) + "\n";
  }
  EXPECT_EQ(writes, c.writes);
  const Json* last = p.status ? at(p.status->body, "status", "lastScheduleTime") : nullptr;
  EXPECT_EQ(string_or(last), c.last_schedule);
  EXPECT_EQ(
      p.look_again ? std::optional(duration_cast<seconds>(*p.look_again).count()) : std::nullopt,
      c.look_again);
  EXPECT_EQ(p.events.empty() ? "" : p.events.front().reason, c.event);
}

using enum CronChild::End;
const std::string kDone = R"({"lastScheduleTime":"2026-01-01T12:00:00Z"})";

INSTANTIATE_TEST_SUITE_P(
    Table, CronPlan,
    testing::Values(Case{.name = "StartsWhenItIsTime",
                         .writes = "create Job ns/c-29454480\n",
                         .last_schedule = "2026-01-01T12:00:00Z",
                         .event = "SuccessfulCreate"},
                    Case{.name = "OnceForEachTime", .status = kDone},
                    Case{.name = "NotBeforeItsTime",
                         .spec = R"({"schedule":"0 0 * * *"})",
                         .look_again = 11 * 3600 + 59 * 60 + 30},
                    Case{.name = "NotWhileSuspended",
                         .spec = R"({"schedule":"0 * * * *","suspend":true})",
                         .look_again = std::nullopt},
                    Case{.name = "MissedLongAgoStartsTheLatestOnly",
                         .status = R"({"lastScheduleTime":"2026-01-01T03:00:00Z"})",
                         .writes = "create Job ns/c-29454480\n",
                         .last_schedule = "2026-01-01T12:00:00Z",
                         .event = "SuccessfulCreate"},
                    Case{.name = "TooLateIsTooLate",
                         .spec = R"({"schedule":"0 * * * *","startingDeadlineSeconds":10})"},
                    Case{.name = "MoreThanAHundredMissedIsTold",
                         .spec = R"({"schedule":"* * * * *"})",
                         .status = R"({"lastScheduleTime":"2026-01-01T03:00:00Z"})",
                         .writes = "create Job ns/c-29454480\n",
                         .last_schedule = "2026-01-01T12:00:00Z",
                         .look_again = 30,
                         .event = "TooManyMissedTimes"},
                    Case{.name = "ForbidWaitsForTheOther",
                         .spec = R"({"schedule":"0 * * * *","concurrencyPolicy":"Forbid"})",
                         .jobs = {{"a"}},
                         .event = "JobAlreadyActive"},
                    Case{.name = "ReplaceEndsTheOther",
                         .spec = R"({"schedule":"0 * * * *","concurrencyPolicy":"Replace"})",
                         .jobs = {{"a"}},
                         .writes = "delete Job ns/a\ncreate Job ns/c-29454480\n",
                         .last_schedule = "2026-01-01T12:00:00Z",
                         .event = "SuccessfulCreate"},
                    Case{.name = "AllowRunsBoth",
                         .jobs = {{"a"}},
                         .writes = "create Job ns/c-29454480\n",
                         .last_schedule = "2026-01-01T12:00:00Z",
                         .event = "SuccessfulCreate"},
                    Case{.name = "KeepsThreeSuccessesAndOneFailure",
                         .status = kDone,
                         .jobs = {{"s1", kComplete, "2026-01-01T01:00:00Z"},
                                  {"s2", kComplete, "2026-01-01T02:00:00Z"},
                                  {"s3", kComplete, "2026-01-01T03:00:00Z"},
                                  {"s4", kComplete, "2026-01-01T04:00:00Z"},
                                  {"f1", kFailed, "2026-01-01T05:00:00Z"},
                                  {"f2", kFailed, "2026-01-01T06:00:00Z"}},
                         .writes = "delete Job ns/s1\ndelete Job ns/f1\n",
                         .event = "SuccessfulDelete"},
                    Case{.name = "TimeZone",
                         .spec = R"({"schedule":"0 13 * * *","timeZone":"Europe/Paris"})",
                         .writes = "create Job ns/c-29454480\n",
                         .last_schedule = "2026-01-01T12:00:00Z",
                         .look_again = 24 * 3600 - 30,
                         .event = "SuccessfulCreate"},
                    Case{.name = "UnknownTimeZone",
                         .spec = R"({"schedule":"0 13 * * *","timeZone":"Mars/Base"})",
                         .look_again = std::nullopt,
                         .event = "UnknownTimeZone"},
                    Case{.name = "WrongSchedule",
                         .spec = R"({"schedule":"often"})",
                         .look_again = std::nullopt,
                         .event = "UnparseableSchedule"}),
    [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace grapnel::local
