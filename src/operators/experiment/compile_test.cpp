#include "operators/experiment/compile.h"

#include <gtest/gtest.h>

#include "operators/experiment/code.h"
#include "operators/experiment/manifest.h"
#include "operators/experiment/pod_template.h"

namespace grapnel::experiment {
namespace {

// Of a manifest whose spec is this YAML.
api::Experiment experiment_of(std::string_view spec, kube::StringMap annotations = {}) {
  const std::string text = "kind: AIchorManifest\napiVersion: 0.2.3\nspec:\n" + std::string(spec);
  const auto manifest = parse_manifest(text, "m.yaml");
  EXPECT_TRUE(manifest) << manifest.error().message;
  api::Experiment experiment;
  experiment.meta.key = {Interned("lab"), "exp"};
  experiment.meta.uid = kube::Uid("u-1");
  experiment.meta.annotations = std::move(annotations);
  experiment.spec = manifest->decoded;
  return experiment;
}

// The JobSet it becomes.
Compiled compiled_of(std::string_view spec, kube::StringMap annotations = {},
                     const CompileOptions& options = {}) {
  const auto compiled = check_and_compile(experiment_of(spec, std::move(annotations)), options);
  EXPECT_TRUE(compiled) << compiled.error().message;
  EXPECT_EQ(compiled->kind->kind, "JobSet");
  return *compiled;
}

Json jobset_of(std::string_view spec, kube::StringMap annotations = {}) {
  return compiled_of(spec, std::move(annotations)).object;
}

const Json& replicated_job(const Json& jobset, size_t index) {
  return at(jobset, "spec", "replicatedJobs")->as_array().at(index);
}

// NAME=value or NAME<-field, a line each.
std::string env_of(const Json& job) {
  const Json& container =
      at(job, "template", "spec", "template", "spec", "containers")->as_array().at(0);
  std::string text;
  for (const auto& entry : at(container, "env")->as_array()) {
    const auto* field = at(entry, "valueFrom", "fieldRef", "fieldPath");
    text += fmt::format("{}{}{}\n", string_or(at(entry, "name")), field != nullptr ? "<-" : "=",
                        field != nullptr ? string_or(field) : string_or(at(entry, "value")));
  }
  return text;
}

TEST(Compile, JaxIsOneIndexedJobWithACoordinator) {
  const Json jobset = jobset_of(
      "  operator: jax\n  image: i\n  command: run\n"
      "  types: {worker: {count: 3, resources: {cpus: 1, ramRatio: 2}}}\n");
  EXPECT_EQ(to_text(*at(jobset, "spec", "coordinator")),
            R"({"replicatedJob":"worker","jobIndex":0,"podIndex":0})");
  const Json& job = replicated_job(jobset, 0);
  EXPECT_EQ(int_or(at(job, "replicas")), 1);
  EXPECT_EQ(int_or(at(job, "template", "spec", "completions")), 3);
  EXPECT_EQ(int_or(at(job, "template", "spec", "parallelism")), 3);
  EXPECT_EQ(
      env_of(job),
      "JAXOPERATOR_COORDINATOR_HOST<-metadata.labels['jobset.sigs.k8s.io/coordinator']\n"
      "JAXOPERATOR_COORDINATOR_ADDRESS=$(JAXOPERATOR_COORDINATOR_HOST):1234\n"
      "JAXOPERATOR_NUM_PROCESSES=3\n"
      "JAXOPERATOR_PROCESS_ID<-metadata.annotations['batch.kubernetes.io/job-completion-index']\n"
      "AICHOR_EXPERIMENT_ID=exp\nAICHOR_PROJECT_ID=lab\n");
}

TEST(Compile, PyTorchAndXGBoostDifferInTheirPort) {
  for (const auto& [op, port] : {std::pair{"pytorch", "23456"}, std::pair{"xgboost", "9999"}}) {
    const Json jobset = jobset_of(
        fmt::format("  operator: {}\n  command: run\n"
                    "  types: {{worker: {{count: 2, resources: {{cpus: 1, ramRatio: 2}}}}}}\n",
                    op));
    EXPECT_EQ(env_of(replicated_job(jobset, 0)),
              fmt::format("MASTER_ADDR<-metadata.labels['jobset.sigs.k8s.io/coordinator']\n"
                          "MASTER_PORT={}\nWORLD_SIZE=2\n"
                          "RANK<-metadata.annotations['batch.kubernetes.io/job-completion-index']\n"
                          "AICHOR_EXPERIMENT_ID=exp\nAICHOR_PROJECT_ID=lab\n",
                          port));
  }
}

TEST(Compile, TheTwoDimensionalJobSetHasSevenJobs) {
  const Json jobset = jobset_of(R"(  operator: jobset
  command: run
  types:
    worker-2: {count: 1, completions: 4, parallelisms: 1, resources: {cpus: 1, ramRatio: 2}}
    master: {count: 1, resources: {cpus: 1, ramRatio: 2}}
    worker: {count: 5, completions: 4, parallelisms: 2, resources: {cpus: 4, ramRatio: 2}}
)");
  std::string shape;
  for (const auto& job : at(jobset, "spec", "replicatedJobs")->as_array()) {
    shape +=
        fmt::format("{} {}x{} {} at a time\n", string_or(at(job, "name")),
                    int_or(at(job, "replicas")), int_or(at(job, "template", "spec", "completions")),
                    int_or(at(job, "template", "spec", "parallelism")));
  }
  EXPECT_EQ(shape, "master 1x1 1 at a time\nworker 5x4 2 at a time\nworker-2 1x4 1 at a time\n");
  EXPECT_EQ(
      env_of(replicated_job(jobset, 0)),
      "JOB_INDEX<-metadata.labels['jobset.sigs.k8s.io/job-index']\n"
      "GLOBAL_REPLICAS<-metadata.labels['jobset.sigs.k8s.io/global-replicas']\n"
      "JOB_GLOBAL_INDEX<-metadata.labels['jobset.sigs.k8s.io/job-global-index']\n"
      "REPLICATED_JOB_NAME<-metadata.labels['jobset.sigs.k8s.io/replicatedjob-name']\n"
      "REPLICATED_JOB_REPLICAS<-metadata.labels['jobset.sigs.k8s.io/replicatedjob-replicas']\n"
      "AICHOR_EXPERIMENT_ID=exp\nAICHOR_PROJECT_ID=lab\n");
  EXPECT_EQ(at(jobset, "spec", "coordinator"), nullptr);
}

TEST(Compile, ResourcesFollowTheManifest) {
  const Json jobset = jobset_of(R"(  operator: pytorch
  command: run
  timeout: 1h 30m
  activeDeadlineSeconds: 5
  types:
    worker:
      count: 1
      resources:
        cpus: 4
        ramRatio: 1.5
        shmSizeGB: 8
        accelerators: {gpu: {count: 2, type: gpu, product: Quadro-RTX-4000}}
)");
  const Json& job = *at(replicated_job(jobset, 0), "template", "spec");
  EXPECT_EQ(int_or(at(job, "activeDeadlineSeconds")), 5400);
  const Json& pod = *at(job, "template", "spec");
  const Json& container = at(pod, "containers")->as_array().at(0);
  EXPECT_EQ(to_text(*at(container, "resources")),
            R"({"requests":{"cpu":"4","memory":"6Gi","nvidia.com/gpu":"2"},)"
            R"("limits":{"cpu":"8","memory":"6Gi","nvidia.com/gpu":"2"}})");
  EXPECT_EQ(to_text(*at(pod, "nodeSelector")), R"({"nvidia.com/gpu.product":"Quadro-RTX-4000"})");
  EXPECT_EQ(to_text(*at(pod, "volumes")),
            R"([{"emptyDir":{"medium":"Memory","sizeLimit":"8Gi"},"name":"dshm"}])");
  EXPECT_EQ(to_text(*at(container, "command")), R"(["/bin/sh","-c","run"])");
}

constexpr std::string_view kWithTensorBoard =
    "  operator: jax\n  command: run\n  tensorboard: {enabled: true}\n"
    "  types: {worker: {count: 1, resources: {cpus: 1, ramRatio: 2}}}\n";

TEST(Compile, ASharedVolumeIsMadeForTheExperimentAndGoesWithIt) {
  const Json jobset = jobset_of(
      "  operator: jax\n  image: i\n  command: run\n"
      "  storage: {sharedVolume: {mountPoint: /shared, sizeGB: 5, storageClass: fast},\n"
      "            attachExistingPVCs: [{name: old, mountPoint: /old}]}\n"
      "  types: {worker: {count: 2, resources: {cpus: 1, ramRatio: 2}}}\n");
  EXPECT_EQ(*at(jobset, "spec", "volumeClaimPolicies"),
            *parse_json(R"([{"retentionPolicy":{"whenDeleted":"Delete"},"templates":[
              {"metadata":{"name":"shared"},"spec":{"accessModes":["ReadWriteMany"],
               "resources":{"requests":{"storage":"5Gi"}},"storageClassName":"fast"}}]}])"));
  const Json& pod = *at(replicated_job(jobset, 0), "template", "spec", "template", "spec");
  EXPECT_EQ(*at(pod, "volumes"), *parse_json(R"([{"name":"pvc-0",
              "persistentVolumeClaim":{"claimName":"old"}}])"));
  EXPECT_EQ(*at(at(pod, "containers")->at(0), "volumeMounts"),
            *parse_json(R"([{"name":"shared","mountPath":"/shared"},
                            {"name":"pvc-0","mountPath":"/old"}])"));
}

TEST(Compile, OnTheLaptopAnExperimentHasFolders) {
  const Compiled compiled = compiled_of(kWithTensorBoard, {}, {.folders = "/state"});
  const std::string env = env_of(replicated_job(compiled.object, 0));
  EXPECT_EQ(env.substr(env.find("AICHOR_INPUT")),
            "AICHOR_INPUT_PATH=/state/lab/exp/inputs\n"
            "AICHOR_OUTPUT_PATH=/state/lab/exp/outputs\n"
            "AICHOR_TENSORBOARD_PATH=/state/lab/exp/tensorboard\n");
  const Json& pod = *at(replicated_job(compiled.object, 0), "template", "spec", "template", "spec");
  EXPECT_EQ(to_text(at(pod, "volumes")->as_array().at(1)),
            R"({"hostPath":{"path":"/state/lab/exp/outputs","type":"DirectoryOrCreate"},)"
            R"("name":"outputs"})");
  EXPECT_EQ(to_text(at(at(pod, "containers")->as_array().at(0), "volumeMounts")->as_array().at(1)),
            R"({"name":"outputs","mountPath":"/state/lab/exp/outputs"})");
}

TEST(Compile, ATensorBoardStandsBesideWhereItHasWhatToShow) {
  const auto experiment = experiment_of(kWithTensorBoard);
  EXPECT_FALSE(has_tensorboard(experiment, {}));
  ASSERT_TRUE(has_tensorboard(experiment, {.folders = "/state"}));
  const Json pod = tensorboard_of(experiment, {.folders = "/state"});
  EXPECT_EQ(string_or(at(pod, "metadata", "name")), "exp-tensorboard");
  EXPECT_EQ(string_or(at(pod, "metadata", "labels", "grapnel.dev/companion")), "true");
  EXPECT_EQ(
      string_or(&at(at(pod, "spec", "containers")->as_array().at(0), "command")->as_array().at(2)),
      "command -v tensorboard >/dev/null || { echo \"tensorboard is not installed here: pip "
      "install tensorboard\" >&2; exit 127; }; exec tensorboard "
      "--logdir=\"$AICHOR_TENSORBOARD_PATH\" --bind_all --port=6006");
}

TEST(Compile, JupyterTakesThePlaceOfTheCommandForTwelveHours) {
  const Json jobset = jobset_of(
      "  operator: jax\n  timeout: 1w\n  debug: {jupyter: {enabled: true, path: lab}}\n"
      "  types: {worker: {count: 1, resources: {cpus: 1, ramRatio: 2}}}\n");
  const Json& job = *at(replicated_job(jobset, 0), "template", "spec");
  EXPECT_EQ(int_or(at(job, "activeDeadlineSeconds")), 12 * 3600);
  EXPECT_EQ(string_or(&at(at(job, "template", "spec", "containers")->as_array().at(0), "command")
                           ->as_array()
                           .at(2)),
            "command -v jupyter >/dev/null || { echo \"jupyter is not installed here: pip install "
            "jupyterlab\" >&2; exit 127; }; exec jupyter server --ip=0.0.0.0 --port=8888 "
            "--no-browser --allow-root --ServerApp.base_url=/lab");
}

TEST(Compile, TheShellSeesTheCommandAsItIsWritten) {
  const Json jobset = jobset_of(
      "  operator: jax\n  command: echo $$ $HOME $(date) $$$x\n"
      "  types: {worker: {count: 1, resources: {cpus: 1, ramRatio: 2}}}\n");
  const Json& pod = *at(replicated_job(jobset, 0), "template", "spec", "template", "spec");
  // The kubelet makes one `$` of two.
  EXPECT_EQ(to_text(*at(at(pod, "containers")->as_array().at(0), "command")),
            R"~(["/bin/sh","-c","echo $$$$ $HOME $(date) $$$$$x"])~");
}

TEST(Compile, ReadsOnlyAnnotationsThatCachesKeep) {
  const auto kept = api::Resource<api::Experiment>::kept_metadata().annotations;
  for (const auto key : {kCodeAnnotation, kEnvironmentAnnotation, kWorkDirectoryAnnotation}) {
    EXPECT_NE(std::ranges::find(kept, key), kept.end()) << key;
  }
}

TEST(Compile, OnTheLaptopProgramsAreFoundAsTheCallerFindsThem) {
  const kube::StringMap annotations(
      {{Interned("grapnel.dev/environment"),
        Interned(R"~({"PATH":"/venv/bin:/$(odd)","VIRTUAL_ENV":"/venv","PYTHONPATH":"/mine"})~")}});
  const Json jobset = jobset_of(
      "  operator: jobset\n  command: run\n  env: {PYTHONPATH: /theirs}\n"
      "  types: {a: {resources: {cpus: 1, ramRatio: 2}}}\n",
      annotations);
  const std::string env = env_of(replicated_job(jobset, 0));
  EXPECT_EQ(env.substr(env.find("AICHOR_EXPERIMENT_ID")),
            "AICHOR_EXPERIMENT_ID=exp\nAICHOR_PROJECT_ID=lab\n"
            "PATH=/venv/bin:/$$(odd)\n"
            "VIRTUAL_ENV=/venv\n"
            "PYTHONPATH=/theirs\n");
}

TEST(Compile, PodsOfSeveralJobsCarryWhatTheirRanksAreCountedFrom) {
  const Json jobset = jobset_of(R"(  operator: jobset
  command: run
  types:
    master: {resources: {cpus: 1, ramRatio: 2}}
    worker: {count: 5, completions: 4, resources: {cpus: 1, ramRatio: 2}}
    z: {resources: {cpus: 1, ramRatio: 2}}
)");
  std::string labels;
  for (const auto& job : at(jobset, "spec", "replicatedJobs")->as_array()) {
    const Json& pod = *at(job, "template", "spec", "template", "metadata", "labels");
    labels += fmt::format("{} {} {}\n", string_or(find(pod, "grapnel.dev/component")),
                          string_or(find(pod, "grapnel.dev/first-rank")),
                          string_or(find(pod, "grapnel.dev/job-size")));
  }
  EXPECT_EQ(labels, "master 0 1\nworker 1 4\nz 21 1\n");
}

TEST(Compile, SaysWhatEachComponentAsksFor) {
  const Compiled compiled = compiled_of(R"(  operator: jobset
  command: run
  types:
    worker: {count: 5, completions: 4, parallelisms: 2, resources: {cpus: 1, ramRatio: 2}}
)");
  ASSERT_EQ(compiled.totals.size(), 1U);
  const ComponentTotal& worker = compiled.totals[0];
  EXPECT_EQ(worker.shape, "5 Jobs of 2 pods");
  EXPECT_EQ(worker.pods, 10);
  EXPECT_EQ(worker.requests.at("memory").text(), "2Gi");
  EXPECT_EQ(worker.limits.at("cpu").text(), "2");
}

// What is waited for, and the command that comes after it.
std::pair<std::string, std::string> wait_of(std::string_view spec) {
  const Json jobset = jobset_of(spec);
  const Json& container =
      *at(*at(replicated_job(jobset, 0), "template", "spec", "template", "spec"), "containers");
  const auto& line = find(container.at(0), "command")->as_array();
  EXPECT_EQ(line.size(), 5U);
  const std::string script(string_or(&line.at(2)));
  return {script.substr(0, script.find('\n')), std::string(string_or(&line.at(4)))};
}

TEST(Compile, AProcessWaitsForItsAddressWhereItIsAskedTo) {
  using Wait = std::pair<std::string, std::string>;
  constexpr std::string_view kRest =
      "  command: echo $$\n  waitForAddress: true\n"
      "  types: {worker: {count: 1, resources: {cpus: 1, ramRatio: 2}}}\n";
  EXPECT_EQ(wait_of(fmt::format("  operator: jax\n{}", kRest)),
            (Wait{"grapnel_name=\"$JAXOPERATOR_COORDINATOR_HOST\"", "echo $$$$"}));
  EXPECT_EQ(wait_of(fmt::format("  operator: xgboost\n{}", kRest)),
            (Wait{"grapnel_name=\"$MASTER_ADDR\"", "echo $$$$"}));
  EXPECT_EQ(
      wait_of(fmt::format("  operator: jobset\n{}", kRest)),
      (Wait{"grapnel_name=\"exp-worker-$JOB_INDEX-$JOB_COMPLETION_INDEX.exp\"", "echo $$$$"}));
}

TEST(Compile, AnExperimentOwnsWhatItBecomes) {
  const Json jobset = jobset_of(
      "  operator: jax\n  command: run\n  queue: gpus\n"
      "  types: {worker: {count: 1, resources: {cpus: 0.5, memory: 1}}}\n");
  EXPECT_EQ(to_text(*at(jobset, "metadata")),
            R"({"name":"exp","namespace":"lab","labels":{"grapnel.dev/experiment":"exp",)"
            R"("kueue.x-k8s.io/queue-name":"gpus"},"ownerReferences":[{"apiVersion":)"
            R"("grapnel.dev/v1alpha1","kind":"Experiment","name":"exp","uid":"u-1",)"
            R"("controller":true,"blockOwnerDeletion":true}]})");
}

}  // namespace
}  // namespace grapnel::experiment
