// Experiment: grapnel.dev/v1alpha1, the AIchorManifest as a resource.
#include "api/experiment.h"

#include "controllers/kinds.h"
#include "controllers/wiring.h"
#include "operators/experiment/check.h"
#include "operators/experiment/plan.h"
#include "operators/experiment/process.h"
#include "operators/jobset/names.h"
#include "operators/jobset/plan.h"

namespace grapnel::controllers {
namespace {

namespace kinds = kube::kinds;
using experiment::kExperimentLabel;
using experiment::Observed;
using jobset::keys::kJobSetName;

Causes faults_of(const api::Experiment& experiment) {
  const auto checked = experiment::check(experiment);
  return checked ? Causes() : causes_of(checked.error());
}

// The experiment's processes. Pods of an earlier one of this name may still be ending.
void gather_pods(Observed& observed, const api::Experiment& experiment,
                 std::vector<std::shared_ptr<const api::Pod>> named, Held& held) {
  for (auto& each : named) {
    const api::Pod* pod = held.keep(std::move(each));
    const auto* owner = pod->meta.controller();
    if (pod->meta.labels.has(experiment::kCompanionLabel)) {
      if (owner && owner->uid == experiment.meta.uid) observed.tensorboard = pod;
    } else if (observed.child && observed.child->owns(*pod)) {
      observed.pods.push_back(pod);
    }
  }
}

void add(Wiring& wiring) {
  auto& experiments =
      wiring.informer<api::Experiment>(kinds::kExperiment, leniently<api::Experiment>);
  auto& jobsets =
      wiring.informer<api::JobSet>(kinds::kJobSet, leniently<api::JobSet, api::decode_jobset>);
  auto& jobs = wiring.informer<jobset::ChildJob>(kinds::kJob, jobset::decode_child_job,
                                                 {.labels = std::string(kJobSetName)});
  auto& pods = wiring.informer<api::Pod>(kinds::kPod, experiment::decode_process,
                                         {.labels = std::string(kExperimentLabel)});
  // What Jobs said of pods they could not create: a quota appears nowhere else.
  auto& refusals = wiring.informer<api::Event>(
      kinds::kEvent, api::decode_event, {.fields = "regarding.kind=Job,reason=FailedCreate"});
  refusals.cache().add_index(
      "job", [](const api::Event& event) { return std::vector{event.about_uid.text()}; });

  auto controller = wiring.controller<Observed>({.name = "experiment"}, experiments);
  controller.owns(jobsets);
  controller.labelled(pods, kExperimentLabel);
  controller.reads(jobs);
  // A Job belongs to a JobSet, which has the experiment's name.
  controller.woken_by<api::Event>(refusals, [&jobs](const api::Event& event) {
    const auto job = jobs.cache().get(event.about);
    const auto* owner = job ? job->meta.controller() : nullptr;
    if (owner == nullptr) return std::vector<kube::Key>();
    return std::vector{kube::Key{event.meta.key.ns, owner->name}};
  });
  controller.gathers([&jobsets, &jobs, &pods, &refusals, folders = wiring.options().folders](
                         Observed& observed, const api::Experiment& experiment, Held& held) {
    observed.folders = folders;
    if (const auto* child = held.keep(jobsets.cache().get(experiment.meta.key))) {
      observed.child = experiment::jobset_child_state(*child);
    }
    gather_pods(observed, experiment, find_labelled(pods, kExperimentLabel, experiment.meta), held);
    if (!observed.child || refusals.cache().size() == 0) return;
    for (const auto& job : jobs.cache().controlled_by(observed.child->ref.uid)) {
      for (auto& event : refusals.cache().indexed("job", job->meta.uid.text())) {
        observed.refusals.push_back(held.keep(std::move(event)));
      }
    }
  });
  controller.plans(experiment::plan);
}

}  // namespace

OurKind experiment_kind() {
  return {
      .controller = "experiment",
      .type = described<api::Experiment>(),
      .rules = rules<api::Experiment>({.validate = faults_of}),
      // A TensorBoard's pod is made on the laptop only, where nobody is asked for leave.
      .writes = {{kinds::kJobSet, "", {"create", "patch"}}},
      .add = add,
  };
}

}  // namespace grapnel::controllers
