#include "operators/experiment/compile.h"

#include "operators/common/object.h"
#include "operators/experiment/components.h"
#include "operators/experiment/pod_template.h"

namespace grapnel::experiment {
namespace {

using api::Operator;

constexpr std::string_view kCoordinator = "metadata.labels['jobset.sigs.k8s.io/coordinator']";
constexpr std::string_view kRank =
    "metadata.annotations['batch.kubernetes.io/job-completion-index']";

JsonArray jax_env(int64_t count) {
  return {env_field("JAXOPERATOR_COORDINATOR_HOST", kCoordinator),
          env_value("JAXOPERATOR_COORDINATOR_ADDRESS", "$(JAXOPERATOR_COORDINATOR_HOST):1234"),
          env_value("JAXOPERATOR_NUM_PROCESSES", std::to_string(count)),
          env_field("JAXOPERATOR_PROCESS_ID", kRank)};
}

JsonArray master_env(int64_t count, std::string_view port) {
  return {env_field("MASTER_ADDR", kCoordinator), env_value("MASTER_PORT", port),
          env_value("WORLD_SIZE", std::to_string(count)), env_field("RANK", kRank)};
}

// JOB_COMPLETION_INDEX itself is set by the Job controller.
JsonArray jobset_env() {
  const auto label = [](std::string_view name, std::string_view key) {
    return env_field(name, fmt::format("metadata.labels['jobset.sigs.k8s.io/{}']", key));
  };
  return {label("JOB_INDEX", "job-index"), label("GLOBAL_REPLICAS", "global-replicas"),
          label("JOB_GLOBAL_INDEX", "job-global-index"),
          label("REPLICATED_JOB_NAME", "replicatedjob-name"),
          label("REPLICATED_JOB_REPLICAS", "replicatedjob-replicas")};
}

JsonArray distribution_env(Operator op, int64_t count) {
  switch (op) {
    case Operator::jax:
      return jax_env(count);
    case Operator::pytorch:
      return master_env(count, "23456");
    case Operator::xgboost:
      return master_env(count, "9999");
    default:
      return jobset_env();
  }
}

// How many Jobs a component has, and how many pods each of them.
struct Shape {
  int64_t jobs = 1;
  int64_t completions = 1;
  int64_t parallelism = 1;
};

Shape shape_of(Operator op, const api::Component& component) {
  // One Indexed Job of all workers: one object to watch, and the rank is the pod's index.
  if (op != Operator::jobset) return {1, component.count, component.count};
  const int64_t completions = component.completions.value_or(1);
  return {component.count, completions, component.parallelisms.value_or(completions)};
}

Json replicated_job(const api::Experiment& experiment, const std::string& folder,
                    const std::string& name, const api::Component& component) {
  const auto& spec = experiment.spec;
  const Shape shape = shape_of(spec.op, component);
  JsonObject job{
      {"completionMode", "Indexed"},
      {"completions", shape.completions},
      {"parallelism", shape.parallelism},
      // The whole experiment starts again, or fails, when one of its processes does.
      {"backoffLimit", 0},
      {"template",
       pod_template(experiment, {.component = name,
                                 .resources = component.resources,
                                 .distribution = distribution_env(spec.op, component.count),
                                 .folder = folder})}};
  if (const auto deadline = deadline_of(spec)) job["activeDeadlineSeconds"] = deadline->count();
  return JsonObject{
      {"name", name}, {"replicas", shape.jobs}, {"template", JsonObject{{"spec", std::move(job)}}}};
}

JsonObject failure_policy(const api::ExperimentSpec& spec) {
  return {{"maxRestarts", spec.backoff_limit},
          // Time is up for the experiment, not for one try of it.
          {"rules", JsonArray{JsonObject{{"name", "deadline"},
                                         {"action", "FailJobSet"},
                                         {"onJobFailureReasons", JsonArray{"DeadlineExceeded"}}}}}};
}

// One for all pods, which the JobSet makes and mounts; it goes with the experiment.
JsonArray claims_of(const api::SharedVolume& volume) {
  JsonObject claim{
      {"accessModes", JsonArray{volume.access_mode.value_or("ReadWriteMany")}},
      {"resources",
       JsonObject{{"requests", JsonObject{{"storage", fmt::format("{}Gi", volume.size_gb)}}}}}};
  if (volume.storage_class) claim["storageClassName"] = *volume.storage_class;
  return {JsonObject{
      {"templates", JsonArray{JsonObject{{"metadata", JsonObject{{"name", kSharedVolume}}},
                                         {"spec", std::move(claim)}}}},
      {"retentionPolicy", JsonObject{{"whenDeleted", "Delete"}}}}};
}

Json job_set(const api::Experiment& experiment, const std::string& folder,
             const Components& components) {
  const auto& spec = experiment.spec;
  JsonArray jobs;
  for (const auto& [name, component] : components.named) {
    jobs.push_back(replicated_job(experiment, folder, name, component));
  }
  JsonObject labels{{"grapnel.dev/experiment", experiment.meta.name()}};
  if (spec.queue) labels["kueue.x-k8s.io/queue-name"] = *spec.queue;
  JsonObject body{{"replicatedJobs", std::move(jobs)}, {"failurePolicy", failure_policy(spec)}};
  if (spec.op != Operator::jobset) {
    body["coordinator"] = JsonObject{{"replicatedJob", "worker"}, {"jobIndex", 0}, {"podIndex", 0}};
  }
  if (spec.storage && spec.storage->shared_volume) {
    body["volumeClaimPolicies"] = claims_of(*spec.storage->shared_volume);
  }
  if (spec.cancel.value_or(false)) body["suspend"] = true;
  return JsonObject{
      {"apiVersion", kube::kinds::kJobSet.api_version()},
      {"kind", kube::kinds::kJobSet.kind},
      {"metadata", JsonObject{{"name", experiment.meta.name()},
                              {"namespace", experiment.meta.ns()},
                              {"labels", std::move(labels)},
                              {"ownerReferences", operators::owned_by(experiment)}}},
      {"spec", std::move(body)},
  };
}

}  // namespace

Result<Compiled> compile(const api::Experiment& experiment, const CompileOptions& options) {
  api::Faults faults;
  const Components components = validate(experiment.spec, faults);
  if (!faults.empty()) return fail(faults.error("Experiment " + experiment.meta.key.text()));
  switch (experiment.spec.op) {
    case Operator::kuberay:
    case Operator::elastic:
      return fail(Reason::kInvalid, "operator '{}' is not available in this version",
                  api::name_of(experiment.spec.op));
    default:
      break;
  }
  const std::string folder = folder_of(experiment, options.folders);
  Compiled out{.kind = &kube::kinds::kJobSet, .object = job_set(experiment, folder, components)};
  if (experiment.spec.tensorboard && experiment.spec.tensorboard->enabled && !folder.empty()) {
    out.tensorboard = tensorboard_pod(experiment, folder);
    out.tensorboard->at("metadata").as_object()["ownerReferences"] =
        operators::owned_by(experiment);
  }
  return out;
}

}  // namespace grapnel::experiment
