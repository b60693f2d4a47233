#include "operators/experiment/components.h"

#include <algorithm>
#include <array>
#include <set>

#include "base/quantity.h"
#include "base/strings.h"

namespace grapnel::experiment {
namespace {

using api::Faults;
using api::Operator;
using api::Path;

constexpr seconds kLongestJupyter = hours(12);

// Set by us in each process; a manifest that sets them too would break the distribution.
constexpr auto kReservedNames = std::to_array<std::string_view>({
    "JAXOPERATOR_COORDINATOR_HOST",
    "JAXOPERATOR_COORDINATOR_ADDRESS",
    "JAXOPERATOR_NUM_PROCESSES",
    "JAXOPERATOR_PROCESS_ID",
    "MASTER_ADDR",
    "MASTER_PORT",
    "WORLD_SIZE",
    "RANK",
    "JOB_INDEX",
    "JOB_COMPLETION_INDEX",
    "GLOBAL_REPLICAS",
    "JOB_GLOBAL_INDEX",
    "REPLICATED_JOB_NAME",
    "REPLICATED_JOB_REPLICAS",
    "RAY_ADDRESS",
    "RAY_PORT",
    "RAY_CLUSTER_NAME",
    "RAY_NODE_TYPE_NAME",
    "RAY_DASHBOARD_ADDRESS",
    "RAY_JOB_SUBMISSION_ID",
    "KUBERAY_GEN_RAY_START_CMD",
});

bool is_reserved(std::string_view name) {
  return name.starts_with("AICHOR_") ||
         std::ranges::find(kReservedNames, name) != kReservedNames.end();
}

void check_resources(const api::Resources& resources, const Path& path, Faults& faults) {
  if (resources.cpus <= 0) faults.invalid({path, "cpus"}, "", "must be greater than 0");
  if (resources.ram_ratio && resources.memory) {
    faults.forbidden({path, "memory"}, "ramRatio and memory exclude each other; keep one of them");
  }
  if (!resources.ram_ratio && !resources.memory) faults.required({path, "ramRatio"});
  if (resources.ram_ratio && *resources.ram_ratio <= 0) {
    faults.invalid({path, "ramRatio"}, "", "must be greater than 0");
  }
  if (resources.memory && *resources.memory <= 0) {
    faults.invalid({path, "memory"}, "", "must be greater than 0");
  }
  if (resources.cpu_limit_ratio < 1) {
    faults.invalid({path, "cpuLimitRatio"}, "", "must be at least 1");
  }
  if (resources.shm_size_gb < 0) faults.invalid({path, "shmSizeGB"}, "", "must not be negative");
  const auto check_bytes = [&](std::string_view name, const std::optional<std::string>& text) {
    if (text && !Quantity::parse(*text)) {
      faults.invalid({path, name}, *text, "must be a quantity such as 10Gi or 1073741824");
    }
  };
  check_bytes("ephemeralStorageRequest", resources.ephemeral_storage_request);
  check_bytes("ephemeralStorageLimit", resources.ephemeral_storage_limit);
}

// An unknown type's name, with the right spelling beside it.
void refuse_type(const Path& path, std::string_view name, Operator op,
                 std::span<const std::string_view> allowed, Faults& faults) {
  faults.unknown_type(path, std::string(name), api::name_of(op), allowed);
}

void read_named(const api::ExperimentSpec& spec, const Path& types, Components& out,
                Faults& faults) {
  static constexpr auto kWorker = std::to_array<std::string_view>({"worker"});
  const bool free_names = spec.op == Operator::jobset;
  JsonView(spec.types).for_each_member([&](std::string_view name, JsonView value) {
    const Path path(types, name);
    if (!free_names && name != "worker") {
      refuse_type(path, name, spec.op, kWorker, faults);
      return true;
    }
    if (const auto why = why_not_dns1035_label(name); free_names && !why.empty()) {
      faults.invalid(path, std::string(name), why);
    }
    api::Component component;
    api::decode_into(value, component, path, {faults, api::Unknown::kRefuse});
    if (!free_names && component.completions) {
      faults.forbidden({path, "completions"}, "only the jobset operator takes it");
    }
    if (!free_names && component.parallelisms) {
      faults.forbidden({path, "parallelisms"}, "only the jobset operator takes it");
    }
    if (!free_names && component.count < 1) {
      faults.invalid({path, "count"}, std::to_string(component.count),
                     "at least 1 worker must be set");
    }
    check_resources(component.resources, {path, "resources"}, faults);
    out.named.emplace_back(name, std::move(component));
    return true;
  });
  if (JsonView(spec.types).size() == 0) {
    if (free_names) {
      faults.invalid(types, "", "at least one type is needed");
    } else {
      faults.required({types, "worker"});
    }
  }
  std::ranges::sort(out.named, {}, &std::pair<std::string, api::Component>::first);
}

void read_ray(const api::ExperimentSpec& spec, const Path& types, Components& out, Faults& faults) {
  static constexpr auto kRayTypes = std::to_array<std::string_view>({"Head", "Workers"});
  const JsonView value(spec.types);
  value.for_each_member([&](std::string_view name, JsonView) {
    if (std::ranges::find(kRayTypes, name) == kRayTypes.end()) {
      refuse_type({types, name}, name, spec.op, kRayTypes, faults);
    }
    return true;
  });
  const Path head_path(types, "Head");
  const Path workers_path(types, "Workers");
  if (const auto head = value.find("Head")) {
    out.head.emplace();
    api::decode_into(*head, *out.head, head_path, {faults, api::Unknown::kRefuse});
    check_resources(out.head->resources, {head_path, "resources"}, faults);
  } else {
    faults.required(head_path);
  }
  const auto workers = value.find("Workers");
  if (!workers) return faults.required(workers_path);
  api::decode_into(*workers, out.workers, workers_path, {faults, api::Unknown::kRefuse});
  std::set<std::string_view> seen;
  for (size_t i = 0; i < out.workers.size(); ++i) {
    const auto& group = out.workers[i];
    const Path path(workers_path, i);
    if (!seen.insert(group.name).second) faults.duplicate({path, "name"}, group.name);
    if (const auto why = why_not_dns1123_label(group.name); !group.name.empty() && !why.empty()) {
      faults.invalid({path, "name"}, group.name, why);
    }
    check_resources(group.resources, {path, "resources"}, faults);
  }
}

Components read_components(const api::ExperimentSpec& spec, Faults& faults) {
  const Path root("spec");
  const Path types(root, "types");
  Components out;
  if (spec.types.is_null()) return out;  // said already: a required field
  if (!spec.types.is_object()) {
    faults.wrong_type(types, spec.types, "an object");
  } else if (spec.op == Operator::kuberay) {
    read_ray(spec, types, out, faults);
  } else {
    read_named(spec, types, out, faults);
  }
  return out;
}

}  // namespace

Components validate(const api::ExperimentSpec& spec, Faults& faults) {
  const Path root("spec");
  Components components = read_components(spec, faults);
  const bool jupyter = spec.debug && spec.debug->jupyter && spec.debug->jupyter->enabled;
  if (spec.command.empty() && !jupyter) faults.required({root, "command"});
  if (spec.timeout && !parse_manifest_duration(*spec.timeout)) {
    faults.invalid({root, "timeout"}, *spec.timeout,
                   "must be weeks, days, hours, minutes and seconds in that order, such as "
                   "\"1w 2d 5h 6m 20s\" or \"90m\"");
  }
  if (spec.ray_version && spec.op != Operator::kuberay) {
    faults.forbidden({root, "rayVersion"}, "only the kuberay operator takes it");
  }
  const Path env(root, "env");
  for (const auto& [name, value] : spec.env) {
    if (is_reserved(name)) faults.forbidden({env, name}, "the name is reserved; Grapnel sets it");
  }
  return components;
}

std::optional<seconds> deadline_of(const api::ExperimentSpec& spec) {
  std::optional<seconds> deadline;
  if (spec.timeout) {
    if (const auto parsed = parse_manifest_duration(*spec.timeout)) {
      deadline = duration_cast<seconds>(*parsed);
    }
  } else if (spec.active_deadline_seconds) {
    deadline = seconds(*spec.active_deadline_seconds);
  }
  if (spec.debug && spec.debug->jupyter && spec.debug->jupyter->enabled) {
    deadline = std::min(deadline.value_or(kLongestJupyter), kLongestJupyter);
  }
  return deadline;
}

}  // namespace grapnel::experiment
