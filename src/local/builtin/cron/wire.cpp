#include "local/builtin/cron/plan.h"
#include "local/builtin/wiring.h"

namespace grapnel::local {

namespace kinds = kube::kinds;
using runtime::Plan;

void add_cron_jobs(runtime::Manager& manager) {
  auto& crons = manager.add_informer<CronJob>({.kind = kinds::kCronJob}, decode_cron_job);
  auto& jobs = manager.add_informer<CronChild>({.kind = kinds::kJob}, decode_cron_child);
  auto plan = [&](const kube::Key& key, Time now, const runtime::Refusal*) -> std::optional<Plan> {
    const auto cron = crons.cache().get(key);
    if (!cron) return std::nullopt;
    const auto owned = jobs.cache().controlled_by(cron->meta.uid);
    CronObserved observed{.cron = *cron};
    for (const auto& job : owned) observed.jobs.push_back(job.get());
    return local::plan(observed, now);
  };
  auto& controller = manager.add_controller(
      {.name = "cronjob", .kind = &kinds::kCronJob, .plan = std::move(plan)});
  manager.watch(crons, controller);
  manager.watch_owned(jobs, controller);
}

}  // namespace grapnel::local
