#include "cli/controllers/controllers.h"

#include "api/event.h"
#include "api/experiment.h"
#include "api/jobset.h"
#include "api/node.h"
#include "api/pod.h"
#include "api/service.h"
#include "kube/kind.h"
#include "operators/experiment/plan.h"
#include "operators/experiment/process.h"
#include "operators/jobset/gang.h"
#include "operators/jobset/names.h"
#include "operators/jobset/plan.h"
#include "operators/jobset/status.h"

namespace grapnel::cli {
namespace {

namespace kinds = kube::kinds;
using jobset::keys::kJobSetName;
using runtime::Informer;
using runtime::Manager;
using runtime::Plan;

runtime::InformerOptions watch_of(const kube::Kind& kind, const ControllerOptions& options,
                                  std::string_view labels = "") {
  return {.kind = kind, .filter = {.ns = options.ns, .label_selector = std::string(labels)}};
}

// Only the name and the JobSet it belongs to: planners ask no more of a claim.
struct Claim {
  kube::Meta meta;
  bool operator==(const Claim&) const = default;
};

Result<Claim> decode_claim(JsonView object) {
  auto meta = kube::decode_meta(object, {.all_labels = false, .labels = {kJobSetName}});
  if (!meta) return fail(meta.error());
  return Claim{std::move(*meta)};
}

std::string jobset_index(const kube::Meta& meta, std::string_view name) {
  return fmt::format("{}/{}", meta.ns(), name);
}

// To own an object that blocks the owner's deletion takes the right to set the owner's finalizers,
// on clusters that enforce it.
std::vector<Permission> jobset_writes() {
  return {{kinds::kJobSet, "", {"delete"}},
          {kinds::kJobSet, "status", {"patch"}},
          {kinds::kJobSet, "finalizers", {"update"}},
          {kinds::kJob, "", {"create", "patch", "delete"}},
          {kinds::kJob, "status", {"patch"}},
          {kinds::kService, "", {"create"}},
          {kinds::kPersistentVolumeClaim, "", {"create"}},
          {kinds::kPod, "", {"patch", "delete"}},
          {kinds::kPod, "status", {"patch"}},
          {jobset::kPodGroup, "", {"create", "patch"}}};
}

// A TensorBoard's pod is made on the laptop only, where nobody is asked for leave.
std::vector<Permission> experiment_writes() {
  return {{kinds::kExperiment, "", {"delete"}},
          {kinds::kExperiment, "status", {"patch"}},
          {kinds::kExperiment, "finalizers", {"update"}},
          {kinds::kJobSet, "", {"create", "patch"}}};
}

// One for each JobSet that has ended, until it is deleted.
std::vector<runtime::CacheGauge::Sample> terminal_states(const Informer<api::JobSet>& jobsets) {
  std::vector<runtime::CacheGauge::Sample> ended;
  for (const auto& jobset : jobsets.cache().all()) {
    if (jobset->status.terminal_state.empty()) continue;
    auto labels = jobset::metric_labels(*jobset);
    labels.emplace_back("terminal_state", jobset->status.terminal_state);
    ended.push_back({.labels = std::move(labels), .value = 1});
  }
  return ended;
}

void add_jobset(Manager& manager, Informer<api::JobSet>& jobsets, Informer<api::Job>& jobs,
                const ControllerOptions& options) {
  auto& services = manager.add_informer<api::Service>(
      watch_of(kinds::kService, options),
      [](JsonView object) { return api::decode_service(object, {.all_labels = false}); });
  auto& claims = manager.add_informer<Claim>(
      watch_of(kinds::kPersistentVolumeClaim, options, kJobSetName), decode_claim);
  claims.cache().add_index("jobset", [](const Claim& claim) {
    return std::vector{jobset_index(claim.meta, claim.meta.labels.get(kJobSetName))};
  });

  auto& pods = manager.add_informer<api::Pod>(watch_of(kinds::kPod, options, kJobSetName),
                                              jobset::decode_child_pod);
  pods.cache().add_index("jobset", [](const api::Pod& pod) {
    return std::vector{jobset_index(pod.meta, pod.meta.labels.get(kJobSetName))};
  });
  auto& nodes = manager.add_informer<api::Node>(
      {.kind = kinds::kNode}, [](JsonView object) { return api::decode_node(object); });

  auto plan = [&](const kube::Key& key, Time now,
                  const runtime::Refusal* refused) -> std::optional<Plan> {
    const auto jobset = jobsets.cache().get(key);
    if (!jobset) return std::nullopt;
    jobset::Observed observed{.jobset = *jobset, .refused = refused};
    const auto owned = jobs.cache().controlled_by(jobset->meta.uid);
    for (const auto& job : owned) observed.jobs.push_back(job.get());
    const auto& subdomain = jobset->spec.network.subdomain;
    const auto service = services.cache().get({key.ns, subdomain.empty() ? key.name : subdomain});
    observed.service = service.get();
    const auto named = claims.cache().indexed("jobset", jobset_index(jobset->meta, key.name));
    for (const auto& claim : named) observed.claims.push_back(claim->meta.key.name);
    std::vector<std::shared_ptr<const api::Pod>> own_pods;
    if (jobset::needs_pods(*jobset)) {
      own_pods = pods.cache().indexed("jobset", jobset_index(jobset->meta, key.name));
      for (const auto& pod : own_pods) observed.pods.push_back(pod.get());
      // The cache keeps the node: nothing changes in it while a plan is made.
      observed.find_node = [&](std::string_view name) {
        return nodes.cache().get({Interned(), std::string(name)}).get();
      };
    }
    return jobset::plan(observed, now);
  };
  // Thousands of Jobs change for minutes on end: planning shall take half a percent of that time.
  auto& controller = manager.add_controller(
      {.name = "jobset", .kind = &kinds::kJobSet, .plan = std::move(plan), .rest_factor = 200});
  manager.watch(jobsets, controller);
  manager.watch_owned(jobs, controller);
  manager.watch_owned(services, controller);
  manager.watch_mapped<Claim>(claims, controller, [](const Claim& claim) {
    return std::vector{
        kube::Key{claim.meta.key.ns, std::string(claim.meta.labels.get(kJobSetName))}};
  });
  controller.use(pods.cache());
  pods.cache().add_handler([&controller](const api::Pod* before, const api::Pod* after) {
    if (after != nullptr && !jobset::concerns_planner(*after)) return;
    const kube::Meta& meta = (after != nullptr ? after : before)->meta;
    controller.enqueue({meta.key.ns, std::string(meta.labels.get(kJobSetName))});
  });
  manager.watch_mapped<api::Node>(nodes, controller,
                                  [](const api::Node&) { return std::vector<kube::Key>(); });
  manager.add_gauge({.name = "jobset_terminal_state",
                     .help = "JobSets that have ended and still exist, by how they ended.",
                     .read = [&jobsets] { return terminal_states(jobsets); }});
}

// What Jobs said of pods they could not create, by the Job's uid: a quota appears nowhere else.
Informer<api::Event>& add_refusals(Manager& manager, const ControllerOptions& options) {
  auto watched = watch_of(kinds::kEvent, options);
  watched.filter.field_selector = "regarding.kind=Job,reason=FailedCreate";
  auto& refusals = manager.add_informer<api::Event>(std::move(watched), api::decode_event);
  refusals.cache().add_index(
      "job", [](const api::Event& event) { return std::vector{event.about_uid.text()}; });
  return refusals;
}

void add_experiment(Manager& manager, Informer<api::JobSet>& jobsets, Informer<api::Job>& jobs,
                    const ControllerOptions& options) {
  auto& experiments = manager.add_informer<api::Experiment>(
      watch_of(kinds::kExperiment, options),
      [](JsonView object) { return api::decode_resource<api::Experiment>(object); });
  auto& pods = manager.add_informer<api::Pod>(
      watch_of(kinds::kPod, options, experiment::kExperimentLabel), experiment::decode_process);
  pods.cache().add_index("experiment", [](const api::Pod& pod) {
    return std::vector{jobset_index(pod.meta, pod.meta.labels.get(experiment::kExperimentLabel))};
  });

  auto& refusals = add_refusals(manager, options);

  auto plan = [&, folders = options.folders](
                  const kube::Key& key, Time now,
                  const runtime::Refusal* refused) -> std::optional<Plan> {
    const auto experiment = experiments.cache().get(key);
    if (!experiment) return std::nullopt;
    const auto child = jobsets.cache().get(key);
    experiment::Observed observed{
        .experiment = *experiment, .refused = refused, .folders = folders};
    if (child) observed.child = experiment::jobset_child_state(*child);
    const auto named = pods.cache().indexed("experiment", jobset_index(experiment->meta, key.name));
    // Pods of an earlier experiment of this name may still be ending.
    for (const auto& pod : named) {
      const auto* owner = pod->meta.controller();
      if (pod->meta.labels.has(experiment::kCompanionLabel)) {
        if (owner && owner->uid == experiment->meta.uid) observed.tensorboard = pod.get();
      } else if (observed.child && observed.child->owns(*pod)) {
        observed.pods.push_back(pod.get());
      }
    }
    std::vector<std::shared_ptr<const api::Event>> refused_pods;
    if (child && refusals.cache().size() > 0) {
      for (const auto& job : jobs.cache().controlled_by(child->meta.uid)) {
        for (auto& event : refusals.cache().indexed("job", job->meta.uid.text())) {
          observed.refusals.push_back(event.get());
          refused_pods.push_back(std::move(event));
        }
      }
    }
    return experiment::plan(observed, now);
  };
  auto& controller = manager.add_controller(
      {.name = "experiment", .kind = &kinds::kExperiment, .plan = std::move(plan)});
  manager.watch(experiments, controller);
  manager.watch_owned(jobsets, controller);
  manager.watch_mapped<api::Pod>(pods, controller, [](const api::Pod& pod) {
    return std::vector{
        kube::Key{pod.meta.key.ns, std::string(pod.meta.labels.get(experiment::kExperimentLabel))}};
  });
  controller.use(jobs.cache());
  // A Job belongs to a JobSet, which has the experiment's name.
  manager.watch_mapped<api::Event>(refusals, controller, [&jobs](const api::Event& event) {
    const auto job = jobs.cache().get(event.about);
    const auto* owner = job ? job->meta.controller() : nullptr;
    if (owner == nullptr) return std::vector<kube::Key>();
    return std::vector{kube::Key{event.meta.key.ns, owner->name}};
  });
}

}  // namespace

void add_controllers(Manager& manager, const ControllerOptions& options) {
  auto& jobsets =
      manager.add_informer<api::JobSet>(watch_of(kinds::kJobSet, options),
                                        [](JsonView object) { return api::decode_jobset(object); });
  auto& jobs = manager.add_informer<api::Job>(watch_of(kinds::kJob, options, kJobSetName),
                                              jobset::decode_child_job);
  if (options.jobset) add_jobset(manager, jobsets, jobs, options);
  if (options.experiment) add_experiment(manager, jobsets, jobs, options);
}

std::vector<Permission> writes_of(const ControllerOptions& options) {
  std::vector<Permission> all;
  if (options.jobset) all = jobset_writes();
  if (options.experiment) {
    for (auto& permission : experiment_writes()) all.push_back(std::move(permission));
  }
  return all;
}

}  // namespace grapnel::cli
