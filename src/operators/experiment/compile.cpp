#include "operators/experiment/compile.h"

#include "operators/common/object.h"
#include "operators/experiment/check.h"
#include "operators/experiment/pod_template.h"
#include "operators/experiment/process.h"
#include "operators/experiment/wait_for_address.h"

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

// For pods of several Jobs: what their ranks are counted from.
JsonObject rank_labels(const Shape& shape, int64_t first_rank) {
  return {{kFirstRankLabel, std::to_string(first_rank)},
          {kJobSizeLabel, std::to_string(shape.completions)}};
}

// In the words of a shell: every process has its coordinator's name in the environment.
std::string address_to_wait_for(const api::Experiment& experiment, std::string_view component) {
  switch (experiment.spec.op) {
    case Operator::jax:
      return "$JAXOPERATOR_COORDINATOR_HOST";
    case Operator::pytorch:
    case Operator::xgboost:
      return "$MASTER_ADDR";
    default:
      return fmt::format("{0}-{1}-$JOB_INDEX-$JOB_COMPLETION_INDEX.{0}", experiment.meta.name(),
                         component);
  }
}

Json replicated_job(const api::Experiment& experiment, const std::string& folder,
                    const std::string& name, const api::Component& component, int64_t first_rank) {
  const auto& spec = experiment.spec;
  const Shape shape = shape_of(spec.op, component);
  JsonObject labels;
  if (spec.op == Operator::jobset) labels = rank_labels(shape, first_rank);
  std::string address;
  if (spec.wait_for_address.value_or(false)) address = address_to_wait_for(experiment, name);
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
                                 .labels = std::move(labels),
                                 .wait_for = address,
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
  int64_t first_rank = 0;
  for (const auto& [name, component] : components.named) {
    jobs.push_back(replicated_job(experiment, folder, name, component, first_rank));
    const Shape shape = shape_of(spec.op, component);
    first_rank += shape.jobs * shape.completions;
  }
  JsonObject labels{{kExperimentLabel, experiment.meta.name()}};
  if (spec.queue) labels["kueue.x-k8s.io/queue-name"] = *spec.queue;
  JsonObject body{{"replicatedJobs", std::move(jobs)}, {"failurePolicy", failure_policy(spec)}};
  if (has_coordinator(spec.op)) {
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

std::string counted(int64_t count, std::string_view what) {
  return fmt::format("{} {}{}", count, what, count == 1 ? "" : "s");
}

std::map<std::string, Quantity, std::less<>> amounts_of(const Json* list) {
  std::map<std::string, Quantity, std::less<>> amounts;
  if (list == nullptr || !list->is_object()) return amounts;
  for (const auto& [name, amount] : list->as_object()) {
    amounts[std::string(name)] = Quantity::parse(string_or(&amount)).value_or(Quantity());
  }
  return amounts;
}

ComponentTotal total_of(Operator op, const std::string& name, const api::Component& component) {
  const Shape shape = shape_of(op, component);
  const Json resources = resources_of(component.resources);
  return {.name = name,
          .shape = fmt::format("{} of {}", counted(shape.jobs, "Job"),
                               counted(shape.parallelism, "pod")),
          .pods = shape.jobs * shape.parallelism,
          .requests = amounts_of(find(resources, "requests")),
          .limits = amounts_of(find(resources, "limits"))};
}

}  // namespace

const kube::Kind& child_kind(Operator) {
  return kube::kinds::kJobSet;
}

Compiled compile(const api::Experiment& experiment, const Components& components,
                 const CompileOptions& options) {
  const std::string folder = folder_of(experiment, options.folders);
  Compiled out{.kind = &child_kind(experiment.spec.op),
               .object = job_set(experiment, folder, components),
               .totals = {}};
  for (const auto& [name, component] : components.named) {
    out.totals.push_back(total_of(experiment.spec.op, name, component));
  }
  return out;
}

Result<Compiled> check_and_compile(const api::Experiment& experiment,
                                   const CompileOptions& options) {
  const auto components = check(experiment);
  if (!components) return fail(components.error());
  return compile(experiment, *components, options);
}

bool has_tensorboard(const api::Experiment& experiment, const CompileOptions& options) {
  const auto& tensorboard = experiment.spec.tensorboard;
  return tensorboard && tensorboard->enabled && !options.folders.empty();
}

Json tensorboard_of(const api::Experiment& experiment, const CompileOptions& options) {
  Json pod = tensorboard_pod(experiment, folder_of(experiment, options.folders));
  pod.at("metadata").as_object()["ownerReferences"] = operators::owned_by(experiment);
  return pod;
}

}  // namespace grapnel::experiment
