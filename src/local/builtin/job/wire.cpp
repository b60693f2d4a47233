#include "local/builtin/job/plan.h"
#include "local/builtin/wiring.h"

namespace grapnel::local {

namespace kinds = kube::kinds;
using runtime::Manager;
using runtime::Plan;

void add_jobs(Manager& manager) {
  auto& jobs = manager.add_informer<Job>({.kind = kinds::kJob}, decode_job);
  auto& pods = manager.add_informer<JobPod>({.kind = kinds::kPod}, decode_job_pod);
  // Pods of a Job that is gone are known by its name only.
  pods.cache().add_index("job", [](const JobPod& pod) {
    const auto key = runtime::controller_key(pod.meta, kinds::kJob);
    return key ? std::vector{key->text()} : std::vector<std::string>();
  });
  auto plan = [&](const kube::Key& key, Time now, const runtime::Refusal*) -> std::optional<Plan> {
    const auto job = jobs.cache().get(key);
    const auto named = pods.cache().indexed("job", key.text());
    JobObserved observed{.job = job.get()};
    JobObserved earlier;  // pods of a Job of this name that is gone
    for (const auto& pod : named) {
      const bool ours = job && pod->meta.controller()->uid == job->meta.uid;
      (ours ? observed : earlier).pods.push_back(pod.get());
    }
    Plan plan = local::plan(earlier, now);
    if (job) plan.add(local::plan(observed, now));
    return plan;
  };
  auto& controller =
      manager.add_controller({.name = "job", .kind = &kinds::kJob, .plan = std::move(plan)});
  manager.watch(jobs, controller);
  manager.watch_owned(pods, controller);
}

}  // namespace grapnel::local
