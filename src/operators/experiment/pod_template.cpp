#include "operators/experiment/pod_template.h"

#include <array>
#include <cmath>

#include "base/quantity.h"
#include "operators/experiment/code.h"
#include "operators/experiment/process.h"
#include "operators/experiment/wait_for_address.h"

namespace grapnel::experiment {
namespace {

// "3Gi" where it is whole, else in Mi, rounded up.
std::string memory_text(double gibibytes) {
  const auto mebibytes = static_cast<int64_t>(std::ceil(gibibytes * 1024));
  return mebibytes % 1024 == 0 ? fmt::format("{}Gi", mebibytes / 1024)
                               : fmt::format("{}Mi", mebibytes);
}

std::string cpu_text(double cpus) {
  return Quantity::from_milli(static_cast<int64_t>(std::ceil(cpus * 1000))).text();
}

std::string gpu_resource(const api::Gpu& gpu) {
  return gpu.type == "gpu" ? "nvidia.com/gpu" : "nvidia.com/" + gpu.type;
}

JsonObject node_selector_of(const api::Resources& resources) {
  JsonObject selector;
  if (resources.accelerators && resources.accelerators->gpu &&
      resources.accelerators->gpu->product) {
    selector["nvidia.com/gpu.product"] = *resources.accelerators->gpu->product;
  }
  for (const auto& [key, value] : resources.extra_selectors) selector[key] = value;
  return selector;
}

// The volumes of a pod and where its container sees them, side by side.
struct Volumes {
  JsonArray volumes;
  JsonArray mounts;
  void add(std::string_view name, std::string_view path, JsonObject source) {
    source["name"] = name;
    volumes.push_back(std::move(source));
    mount(name, path);
  }
  void mount(std::string_view name, std::string_view path) {
    mounts.push_back({{"name", name}, {"mountPath", path}});
  }
};

Volumes volumes_of(const api::Experiment& experiment, const api::Resources& resources) {
  Volumes out;
  if (resources.shm_size_gb > 0) {
    out.add("dshm", "/dev/shm",
            {{"emptyDir", JsonObject{{"medium", "Memory"},
                                     {"sizeLimit", memory_text(resources.shm_size_gb)}}}});
  }
  if (!experiment.spec.storage) return out;
  const auto& storage = *experiment.spec.storage;
  const auto claim = [](std::string_view name) {
    return JsonObject{{"persistentVolumeClaim", JsonObject{{"claimName", name}}}};
  };
  if (storage.shared_volume) out.mount(kSharedVolume, storage.shared_volume->mount_point);
  for (size_t i = 0; i < storage.attach_existing_pvcs.size(); ++i) {
    const auto& attached = storage.attach_existing_pvcs[i];
    out.add(fmt::format("pvc-{}", i), attached.mount_point, claim(attached.name));
  }
  return out;
}

// `$` as the kubelet leaves it alone: a user's PATH is no place for its $(NAME).
std::string literally(std::string_view value) {
  std::string out;
  for (const char c : value) out.append(c == '$' ? 2 : 1, c);
  return out;
}

// Of the shell in which the user called us. What the manifest sets itself is not said twice.
JsonArray callers_env(const api::Experiment& experiment) {
  JsonArray env;
  const auto annotation = experiment.meta.annotations.get(kEnvironmentAnnotation);
  const auto variables = annotation.empty() ? Result<Json>(Json()) : parse_json(annotation);
  if (!variables) return env;
  JsonView(*variables).for_each_member([&](std::string_view name, JsonView value) {
    const auto text = value.as_string();
    if (text && !experiment.spec.env.contains(std::string(name))) {
      env.push_back(env_value(name, literally(*text)));
    }
    return true;
  });
  return env;
}

// As the shell is to see it: the kubelet makes one `$` of `$$`. It fills in $(NAME) for variables
// of the pod, which no shell could run, and leaves every other $(…) alone.
std::string for_the_shell(std::string_view command) {
  std::string out;
  for (size_t i = 0; i < command.size(); ++i) {
    const bool two = command.substr(i, 2) == "$$";
    out += two ? "$$$$" : std::string(1, command[i]);
    if (two) ++i;
  }
  return out;
}

// Says so itself where the image lacks a program: the shell's own words name no remedy.
std::string if_installed(std::string_view program, std::string_view packages,
                         std::string_view command) {
  return fmt::format(
      "command -v {0} >/dev/null || {{ echo \"{0} is not installed here: pip install {1}\" >&2; "
      "exit 127; }}; exec {2}",
      program, packages, command);
}

std::string command_of(const api::ExperimentSpec& spec) {
  if (!spec.debug || !spec.debug->jupyter || !spec.debug->jupyter->enabled) {
    return for_the_shell(spec.command);
  }
  return if_installed("jupyter", "jupyterlab",
                      fmt::format("jupyter server --ip=0.0.0.0 --port={} --no-browser --allow-root "
                                  "--ServerApp.base_url=/{}",
                                  kJupyterPort, spec.debug->jupyter->path));
}

constexpr auto kFolders = std::to_array<std::pair<std::string_view, std::string_view>>(
    {{"AICHOR_INPUT_PATH", "inputs"},
     {"AICHOR_OUTPUT_PATH", "outputs"},
     {"AICHOR_TENSORBOARD_PATH", "tensorboard"}});

JsonArray platform_env(const api::Experiment& experiment, std::string_view folder) {
  JsonArray env{env_value("AICHOR_EXPERIMENT_ID", experiment.meta.name()),
                env_value("AICHOR_PROJECT_ID", experiment.meta.ns())};
  if (folder.empty()) return env;
  for (const auto& [name, below] : kFolders) {
    env.push_back(env_value(name, fmt::format("{}/{}", folder, below)));
  }
  return env;
}

// The same path inside as outside: what a program prints can be pasted into a shell.
void add_folders(std::string_view folder, Volumes& out) {
  if (folder.empty()) return;
  for (const auto& [name, below] : kFolders) {
    const std::string path = fmt::format("{}/{}", folder, below);
    out.add(below, path, {{"hostPath", JsonObject{{"path", path}, {"type", "DirectoryOrCreate"}}}});
  }
}

void append(JsonArray& to, JsonArray from) {
  for (Json& element : from) to.push_back(std::move(element));
}

JsonObject labels_of(const api::Experiment& experiment, std::string_view component) {
  return {{kExperimentLabel, experiment.meta.name()}, {kComponentLabel, component}};
}

}  // namespace

Json resources_of(const api::Resources& resources) {
  const double memory = resources.memory.value_or(resources.cpus * resources.ram_ratio.value_or(0));
  JsonObject requests{{"cpu", cpu_text(resources.cpus)}, {"memory", memory_text(memory)}};
  JsonObject limits{{"cpu", cpu_text(resources.cpus * resources.cpu_limit_ratio)},
                    {"memory", memory_text(memory)}};
  if (resources.accelerators && resources.accelerators->gpu) {
    const auto& gpu = *resources.accelerators->gpu;
    if (gpu.count > 0) {
      requests[gpu_resource(gpu)] = std::to_string(gpu.count);
      limits[gpu_resource(gpu)] = std::to_string(gpu.count);
    }
  }
  if (resources.ephemeral_storage_request) {
    requests["ephemeral-storage"] = *resources.ephemeral_storage_request;
  }
  if (resources.ephemeral_storage_limit) {
    limits["ephemeral-storage"] = *resources.ephemeral_storage_limit;
  }
  return JsonObject{{"requests", std::move(requests)}, {"limits", std::move(limits)}};
}

Json env_value(std::string_view name, std::string_view value) {
  return JsonObject{{"name", name}, {"value", value}};
}

Json env_field(std::string_view name, std::string_view field_path) {
  return JsonObject{{"name", name},
                    {"valueFrom", JsonObject{{"fieldRef", JsonObject{{"fieldPath", field_path}}}}}};
}

std::string folder_of(const api::Experiment& experiment, std::string_view folders) {
  if (folders.empty()) return "";
  return fmt::format("{}/{}/{}", folders, experiment.meta.ns(), experiment.meta.name());
}

Json pod_template(const api::Experiment& experiment, PodOptions options) {
  const auto& spec = experiment.spec;
  const auto& resources = options.resources;
  JsonArray env = std::move(options.distribution);
  append(env, platform_env(experiment, options.folder));
  append(env, callers_env(experiment));
  for (const auto& [name, value] : spec.env) env.push_back(env_value(name, value));

  Volumes all = volumes_of(experiment, resources);
  add_folders(options.folder, all);
  auto& [volumes, mounts] = all;
  JsonObject container{{"name", options.component},
                       {"image", spec.image.empty() ? "local" : spec.image},
                       {"command", command_line(command_of(spec), options.wait_for)},
                       {"env", std::move(env)},
                       {"resources", resources_of(resources)}};
  if (const auto directory = experiment.meta.annotations.get(kWorkDirectoryAnnotation);
      !directory.empty()) {
    container["workingDir"] = directory;
  }
  if (!mounts.empty()) container["volumeMounts"] = std::move(mounts);

  JsonObject pod{{"restartPolicy", "Never"}, {"containers", JsonArray{std::move(container)}}};
  if (!volumes.empty()) pod["volumes"] = std::move(volumes);
  if (auto selector = node_selector_of(resources); !selector.empty()) {
    pod["nodeSelector"] = std::move(selector);
  }
  if (!resources.extra_tolerations.empty()) {
    pod["tolerations"] =
        JsonArray(resources.extra_tolerations.begin(), resources.extra_tolerations.end());
  }
  if (spec.priority_class) pod["priorityClassName"] = *spec.priority_class;
  if (const auto code = experiment.meta.annotations.get(kCodeAnnotation); !code.empty()) {
    add_code(pod, code);
  }
  JsonObject labels = labels_of(experiment, options.component);
  for (const auto& [key, value] : options.labels) labels[key] = value;
  return JsonObject{{"metadata", JsonObject{{"labels", std::move(labels)}}},
                    {"spec", std::move(pod)}};
}

std::string tensorboard_name(const api::Experiment& experiment) {
  return experiment.meta.name() + "-tensorboard";
}

Json tensorboard_pod(const api::Experiment& experiment, std::string_view folder) {
  Volumes all;
  add_folders(folder, all);
  JsonArray env = platform_env(experiment, folder);
  append(env, callers_env(experiment));
  const auto command = if_installed(
      "tensorboard", "tensorboard",
      fmt::format("tensorboard --logdir=\"$AICHOR_TENSORBOARD_PATH\" --bind_all --port={}",
                  kTensorBoardPort));
  JsonObject labels = labels_of(experiment, "tensorboard");
  labels[kCompanionLabel] = "true";
  JsonObject container{{"name", "tensorboard"},
                       {"image", experiment.spec.image.empty() ? "local" : experiment.spec.image},
                       {"command", JsonArray{"/bin/sh", "-c", command}},
                       {"env", std::move(env)},
                       {"ports", JsonArray{JsonObject{{"containerPort", kTensorBoardPort}}}},
                       {"volumeMounts", std::move(all.mounts)}};
  return JsonObject{{"apiVersion", "v1"},
                    {"kind", "Pod"},
                    {"metadata", JsonObject{{"name", tensorboard_name(experiment)},
                                            {"namespace", experiment.meta.ns()},
                                            {"labels", std::move(labels)}}},
                    {"spec", JsonObject{{"restartPolicy", "OnFailure"},
                                        {"containers", JsonArray{std::move(container)}},
                                        {"volumes", std::move(all.volumes)}}}};
}

}  // namespace grapnel::experiment
