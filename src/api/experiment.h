// Experiment: the AIchorManifest's spec as a resource, with a status anyone can read.
#pragma once

#include <array>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "api/codec.h"
#include "api/describe.h"

namespace grapnel::api {

BOOST_DEFINE_ENUM_CLASS(Operator, kuberay, jax, pytorch, xgboost, jobset, elastic)
// Those that this version can run. A manifest for one of the others is understood, and refused by
// name.
inline constexpr auto kAvailableOperators =
    std::to_array({Operator::jax, Operator::pytorch, Operator::xgboost, Operator::jobset});
bool is_available(Operator op);
std::vector<std::string_view> available_operators();

BOOST_DEFINE_ENUM_CLASS(Phase, Pending, Starting, Running, Succeeded, Failed, Cancelled)

struct Gpu {
  int64_t count = 0;
  std::string type = "gpu";
  std::optional<std::string> product;
};

struct Accelerators {
  std::optional<Gpu> gpu;
};

struct Resources {
  double cpus = 1;
  std::optional<double> ram_ratio;
  std::optional<double> memory;
  double cpu_limit_ratio = 2;
  double shm_size_gb = 0;
  std::optional<Accelerators> accelerators;
  std::map<std::string, std::string> extra_selectors;
  std::vector<Json> extra_tolerations;
  std::optional<std::string> ephemeral_storage_request;
  std::optional<std::string> ephemeral_storage_limit;
};

// As many as Kubernetes can count.
inline constexpr int64_t kMostPods = INT32_MAX;

// One type of the manifest: `worker`, or a name of the user's own for jobset.
struct Component {
  int64_t count = 1;
  std::optional<int64_t> completions;
  std::optional<int64_t> parallelisms;
  Resources resources;
};

struct RayHead {
  Resources resources;
  std::map<std::string, std::string> ray_start_params;
};

struct RayWorkers {
  std::string name;
  int64_t count = 0;
  Resources resources;
  std::map<std::string, std::string> ray_start_params;
};

struct Toggle {
  bool enabled = false;
};

struct Jupyter {
  bool enabled = false;
  std::string path = "jupyter";
};

struct Debug {
  std::optional<Jupyter> jupyter;
};

struct SharedVolume {
  std::string mount_point;
  int64_t size_gb = 0;
  std::optional<std::string> storage_class;
  std::optional<std::string> access_mode;
};

struct AttachedClaim {
  std::string name;
  std::string mount_point;
};

struct Storage {
  std::optional<SharedVolume> shared_volume;
  std::vector<AttachedClaim> attach_existing_pvcs;
};

struct ExperimentSpec {
  Operator op = Operator::jobset;
  std::string image;
  std::string command;
  Json types;  // by operator: see operators/experiment/components.h
  std::optional<std::string> timeout;
  std::optional<int64_t> active_deadline_seconds;
  std::map<std::string, std::string> env;
  std::optional<Toggle> tensorboard;
  std::optional<Debug> debug;
  std::optional<Storage> storage;
  std::optional<std::string> ray_version;
  std::optional<std::string> queue;
  std::optional<std::string> priority_class;
  int64_t backoff_limit = 0;
  std::optional<int64_t> ttl_seconds_after_finished;
  std::optional<bool> wait_for_address;
  std::optional<bool> cancel;
};

struct ComponentStatus {
  std::string name;
  int64_t desired = 0;
  int64_t ready = 0;
  int64_t succeeded = 0;
  int64_t failed = 0;
};

struct ChildReference {
  std::string api_version;
  std::string kind;
  std::string name;
};

struct ExperimentStatus {
  std::optional<Phase> phase;
  std::string reason;
  std::string message;
  std::optional<Time> start_time;
  std::optional<Time> end_time;
  int64_t restarts = 0;
  std::optional<int64_t> exit_code;
  std::vector<ComponentStatus> components;
  std::optional<ChildReference> child;
  std::string folder;                        // on the laptop: has inputs/, outputs/, tensorboard/
  std::map<std::string, std::string> links;  // tensorboard, jupyter: paths below the API server
  std::optional<int64_t> observed_generation;
};

std::string_view operator_doc();

struct Experiment {
  kube::Meta meta;
  ExperimentSpec spec;
  ExperimentStatus status;
  bool operator==(const Experiment& other) const;
};

template <>
struct Resource<Experiment> {
  static ResourceInfo info();
  static kube::MetaOptions kept_metadata();
};

template <>
struct Description<Gpu> {
  static constexpr std::string_view kDoc = "GPUs of each pod.";
  static auto fields() {
    return std::tuple{
        field("count", &Gpu::count, "How many.").required().minimum(0),
        field("type", &Gpu::type, "`gpu`, or `mig-…` for a slice of one.")
            .defaulted()
            .pattern("^(gpu|mig-[a-z0-9.]+)$",
                     "must be `gpu`, or `mig-…` for a slice of one, such as mig-1g.5gb"),
        field("product", &Gpu::product, "The node's label `nvidia.com/gpu.product`.")
            .pattern("^[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?$",
                     "must be the value of a node's label: letters, digits, '-', '_' and '.', such "
                     "as NVIDIA-A100-SXM4-80GB"),
    };
  }
};

template <>
struct Description<Accelerators> {
  static constexpr std::string_view kDoc = "Accelerators of each pod.";
  static auto fields() { return std::tuple{field("gpu", &Accelerators::gpu, "GPUs.")}; }
};

template <>
struct Description<Resources> {
  static constexpr std::string_view kDoc = "What each pod asks for.";
  static auto fields() {
    return std::tuple{
        field("cpus", &Resources::cpus, "CPUs requested.").defaulted(),
        field("ramRatio", &Resources::ram_ratio,
              "GiB of memory for each CPU; this or `memory`, not both."),
        field("memory", &Resources::memory, "GiB of memory; this or `ramRatio`, not both."),
        field("cpuLimitRatio", &Resources::cpu_limit_ratio, "The CPU limit is `cpus` times this.")
            .defaulted(),
        field("shmSizeGB", &Resources::shm_size_gb,
              "Size of /dev/shm in GiB; 0: the platform's default.")
            .defaulted(),
        field("accelerators", &Resources::accelerators, "Accelerators."),
        field("extraSelectors", &Resources::extra_selectors, "More node labels to ask for."),
        field("extraTolerations", &Resources::extra_tolerations, "More tolerations."),
        field("ephemeralStorageRequest", &Resources::ephemeral_storage_request,
              "Bytes of local disk requested."),
        field("ephemeralStorageLimit", &Resources::ephemeral_storage_limit,
              "Bytes of local disk at most."),
    };
  }
};

template <>
struct Description<Component> {
  static constexpr std::string_view kDoc = "One type of process.";
  static auto fields() {
    return std::tuple{
        field("count", &Component::count, "How many replicas.")
            .defaulted()
            .minimum(0)
            .maximum(kMostPods),
        field("completions", &Component::completions, "Pods of each Job (jobset only).")
            .minimum(1)
            .maximum(kMostPods),
        field("parallelisms", &Component::parallelisms, "Pods at a time (jobset only).")
            .minimum(1)
            .maximum(kMostPods),
        field("resources", &Component::resources, "What each pod asks for.").required(),
    };
  }
};

template <>
struct Description<RayHead> {
  static constexpr std::string_view kDoc = "The head of the Ray cluster.";
  static auto fields() {
    return std::tuple{
        field("resources", &RayHead::resources, "What the pod asks for.").required(),
        field("rayStartParams", &RayHead::ray_start_params, "Added to `ray start`, or replaced."),
    };
  }
};

template <>
struct Description<RayWorkers> {
  static constexpr std::string_view kDoc = "A group of workers of the Ray cluster.";
  static auto fields() {
    return std::tuple{
        field("name", &RayWorkers::name, "The group's name.").required(),
        field("count", &RayWorkers::count, "How many pods.").defaulted().minimum(0),
        field("resources", &RayWorkers::resources, "What each pod asks for.").required(),
        field("rayStartParams", &RayWorkers::ray_start_params,
              "Added to `ray start`, or replaced."),
    };
  }
};

template <>
struct Description<Toggle> {
  static constexpr std::string_view kDoc = "On or off.";
  static auto fields() { return std::tuple{field("enabled", &Toggle::enabled, "On.").required()}; }
};

template <>
struct Description<Jupyter> {
  static constexpr std::string_view kDoc =
      "A Jupyter server in place of the command, for 12 hours.";
  static auto fields() {
    return std::tuple{
        field("enabled", &Jupyter::enabled, "On.").required(),
        field("path", &Jupyter::path, "Its path below the experiment's.")
            .defaulted()
            .pattern(
                "^[A-Za-z0-9._~-]+(/[A-Za-z0-9._~-]+)*$",
                "must be a path without spaces, and without '/' at its ends, such as jupyter")};
  }
};

template <>
struct Description<Debug> {
  static constexpr std::string_view kDoc = "Ways to look inside.";
  static auto fields() { return std::tuple{field("jupyter", &Debug::jupyter, "Jupyter.")}; }
};

template <>
struct Description<SharedVolume> {
  static constexpr std::string_view kDoc = "A volume made for the experiment and deleted with it.";
  static auto fields() {
    return std::tuple{
        field("mountPoint", &SharedVolume::mount_point, "Where pods see it.")
            .required()
            .pattern("^/[^:]+$", "must be an absolute path, such as /data"),
        field("sizeGB", &SharedVolume::size_gb, "Its size.").required().minimum(1),
        field("storageClass", &SharedVolume::storage_class, "Its storage class."),
        field("accessMode", &SharedVolume::access_mode, "Its access mode.")
            .pattern("^(ReadWriteOnce|ReadOnlyMany|ReadWriteMany|ReadWriteOncePod)$",
                     "must be ReadWriteOnce, ReadOnlyMany, ReadWriteMany or ReadWriteOncePod"),
    };
  }
};

template <>
struct Description<AttachedClaim> {
  static constexpr std::string_view kDoc = "A PersistentVolumeClaim that exists.";
  static auto fields() {
    return std::tuple{field("name", &AttachedClaim::name, "The claim's name.").required(),
                      field("mountPoint", &AttachedClaim::mount_point, "Where pods see it.")
                          .required()
                          .pattern("^/[^:]+$", "must be an absolute path, such as /data")};
  }
};

template <>
struct Description<Storage> {
  static constexpr std::string_view kDoc = "Volumes.";
  static auto fields() {
    return std::tuple{
        field("sharedVolume", &Storage::shared_volume, "A volume of the experiment's own."),
        field("attachExistingPVCs", &Storage::attach_existing_pvcs, "Claims that exist.")};
  }
};

template <>
struct Description<ExperimentSpec> {
  static constexpr std::string_view kDoc = "A distributed experiment.";
  static auto fields() {
    return std::tuple{
        field("operator", &ExperimentSpec::op, operator_doc())
            .required()
            .offering(available_operators()),
        field("image", &ExperimentSpec::image,
              "The container image; on the laptop it is recorded, not pulled."),
        field("command", &ExperimentSpec::command, "Run by `/bin/sh -c` in each process."),
        field("types", &ExperimentSpec::types, "The components, by name.").required(),
        field("timeout", &ExperimentSpec::timeout,
              "Longest run, such as `1w 2d 5h 6m 20s`; wins over activeDeadlineSeconds."),
        field("activeDeadlineSeconds", &ExperimentSpec::active_deadline_seconds,
              "Longest run in seconds.")
            .minimum(1),
        field("env", &ExperimentSpec::env, "Environment of each process."),
        field("tensorboard", &ExperimentSpec::tensorboard, "A TensorBoard beside the experiment."),
        field("debug", &ExperimentSpec::debug, "Ways to look inside."),
        field("storage", &ExperimentSpec::storage, "Volumes."),
        field("rayVersion", &ExperimentSpec::ray_version, "kuberay only: the image's Ray."),
        field("queue", &ExperimentSpec::queue, "The Kueue queue to wait in."),
        field("priorityClass", &ExperimentSpec::priority_class, "The pods' priority class."),
        field("backoffLimit", &ExperimentSpec::backoff_limit,
              "How often the whole experiment is started again after a failure.")
            .defaulted()
            .minimum(0)
            .maximum(INT32_MAX),
        field("waitForAddress", &ExperimentSpec::wait_for_address,
              "Before the command, waits until the coordinator's name resolves (jobset: the "
              "process's own), for five minutes at most. The image needs `/bin/sh` and one of "
              "`getent`, `python3`, `python`, `nslookup`."),
        field("ttlSecondsAfterFinished", &ExperimentSpec::ttl_seconds_after_finished,
              "Deletes itself so long after its end.")
            .minimum(0),
        field("cancel", &ExperimentSpec::cancel, "Stops it; cancelled is not deleted."),
    };
  }
};

template <>
struct Description<ComponentStatus> {
  static constexpr std::string_view kDoc = "How one component stands.";
  static auto fields() {
    return std::tuple{
        field("name", &ComponentStatus::name, "Its name.").required(),
        field("desired", &ComponentStatus::desired, "Pods asked for.").required(),
        field("ready", &ComponentStatus::ready, "Pods that are ready.").required(),
        field("succeeded", &ComponentStatus::succeeded, "Pods that ended well.").required(),
        field("failed", &ComponentStatus::failed, "Pods that failed.").required(),
    };
  }
};

template <>
struct Description<ChildReference> {
  static constexpr std::string_view kDoc = "What the experiment compiled to.";
  static auto fields() {
    return std::tuple{field("apiVersion", &ChildReference::api_version, "").required(),
                      field("kind", &ChildReference::kind, "").required(),
                      field("name", &ChildReference::name, "").required()};
  }
};

template <>
struct Description<ExperimentStatus> {
  static constexpr std::string_view kDoc = "How the experiment stands.";
  static auto fields() {
    return std::tuple{
        field("phase", &ExperimentStatus::phase, "Where it is in its life."),
        field("reason", &ExperimentStatus::reason, "Why, in a word for programs."),
        field("message", &ExperimentStatus::message, "Why, in a sentence."),
        field("startTime", &ExperimentStatus::start_time, "When it was taken up."),
        field("endTime", &ExperimentStatus::end_time, "When it ended."),
        field("restarts", &ExperimentStatus::restarts, "How often it was started again."),
        field("exitCode", &ExperimentStatus::exit_code,
              "What the experiment ended with: 0, or the code of the process that failed."),
        field("components", &ExperimentStatus::components, "How each component stands.")
            .map_by("name"),
        field("child", &ExperimentStatus::child, "What it compiled to."),
        field("folder", &ExperimentStatus::folder,
              "On a laptop cluster: the folder with `inputs`, `outputs` and `tensorboard`."),
        field("links", &ExperimentStatus::links,
              "Pages to look at (`tensorboard`, `jupyter`), as paths below the API server."),
        field("observedGeneration", &ExperimentStatus::observed_generation,
              "The spec that this status speaks of."),
    };
  }
};

}  // namespace grapnel::api
