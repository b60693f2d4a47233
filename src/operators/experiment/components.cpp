#include "operators/experiment/components.h"

#include <algorithm>
#include <array>
#include <set>

#include "base/quantity.h"
#include "base/strings.h"
#include "document/pattern.h"
#include "operators/experiment/names.h"

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

// What no machine has, and no quantity could hold.
constexpr double kMostOfAnything = 1e6;

struct Amount {
  std::string_view name;
  double value = 0;
  double least = 0;
  bool may_be_least = false;
};

void check_amount(const Amount& amount, const Path& path, Faults& faults) {
  const Path here(path, amount.name);
  const bool is_enough =
      amount.may_be_least ? amount.value >= amount.least : amount.value > amount.least;
  if (!is_enough) {
    faults.invalid(here, fmt::format("{}", amount.value),
                   fmt::format("must be {} {}", amount.may_be_least ? "at least" : "greater than",
                               amount.least));
  } else if (amount.value > kMostOfAnything) {
    faults.invalid(here, fmt::format("{}", amount.value),
                   fmt::format("must be at most {}", kMostOfAnything));
  }
}

void check_selectors(const api::Resources& resources, const Path& path, Faults& faults) {
  const Path selectors(path, "extraSelectors");
  for (const auto& [key, value] : resources.extra_selectors) {
    if (const auto why = why_not_qualified_name(key); !why.empty()) {
      faults.invalid({selectors, key}, key, why);
    }
    if (const auto why = why_not_label_value(value); !why.empty()) {
      faults.invalid({selectors, key}, value, why);
    }
  }
}

void check_resources(const api::Resources& resources, const Path& path, Faults& faults) {
  check_amount({"cpus", resources.cpus}, path, faults);
  if (resources.ram_ratio && resources.memory) {
    faults.forbidden({path, "memory"}, "ramRatio and memory exclude each other; keep one of them");
  }
  if (!resources.ram_ratio && !resources.memory) faults.required({path, "ramRatio"});
  if (resources.ram_ratio) check_amount({"ramRatio", *resources.ram_ratio}, path, faults);
  if (resources.memory) check_amount({"memory", *resources.memory}, path, faults);
  check_amount({"cpuLimitRatio", resources.cpu_limit_ratio, 1, true}, path, faults);
  check_amount({"shmSizeGB", resources.shm_size_gb, 0, true}, path, faults);
  check_selectors(resources, path, faults);
  const auto check_bytes = [&](std::string_view name, const std::optional<std::string>& text) {
    if (text && !Quantity::parse(*text)) {
      faults.invalid({path, name}, *text, "must be a quantity such as 10Gi or 1073741824");
    }
  };
  check_bytes("ephemeralStorageRequest", resources.ephemeral_storage_request);
  check_bytes("ephemeralStorageLimit", resources.ephemeral_storage_limit);
}

// Where they are written: that they are missing is said already.
void check_resources_of(JsonView component, const api::Resources& resources, const Path& path,
                        Faults& faults) {
  const auto written = component.find("resources");
  if (written && written->is_object()) check_resources(resources, {path, "resources"}, faults);
}

// Kubernetes counts them in 32 bits.
void check_pods_at_once(Operator op, const api::Component& component, const Path& path,
                        Faults& faults) {
  const bool many_jobs = op == Operator::jobset;
  const int64_t at_once =
      many_jobs ? component.parallelisms.value_or(component.completions.value_or(1)) : 1;
  if (component.count > api::kMostPods || at_once > api::kMostPods) return;  // said already
  if (component.count * at_once > api::kMostPods) {
    faults.invalid({path, "count"}, std::to_string(component.count),
                   fmt::format("with {} pods of each at a time more than {} would run", at_once,
                               api::kMostPods));
  }
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
      faults.invalid(path, std::string(name), why + suggested_name(name));
    }
    api::Component component;
    const size_t before = faults.causes().size();
    api::decode_into(value, component, path, {faults, api::Unknown::kRefuse});
    // Of what could not be read no more can be said.
    if (faults.causes().size() > before && !value.is_object()) return true;
    if (!free_names && component.completions) {
      faults.forbidden({path, "completions"}, "only the jobset operator takes it");
    }
    if (!free_names && component.parallelisms) {
      faults.forbidden({path, "parallelisms"}, "only the jobset operator takes it");
    }
    if (!free_names && component.count == 0) {
      faults.invalid({path, "count"}, "0", "at least 1 worker must be set");
    }
    check_pods_at_once(spec.op, component, path, faults);
    check_resources_of(value, component.resources, path, faults);
    out.named.emplace_back(name, std::move(component));
    return true;
  });
  if (JsonView(spec.types).size() == 0) {
    if (free_names) {
      faults.invalid(types, "{}", "at least one type is needed, such as `worker`");
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
    check_resources_of(*head, out.head->resources, head_path, faults);
  } else {
    faults.required(head_path);
  }
  const auto workers = value.find("Workers");
  if (!workers) return faults.required(workers_path);
  api::decode_into(*workers, out.workers, workers_path, {faults, api::Unknown::kRefuse});
  std::set<std::string_view> seen;
  workers->for_each_element([&](size_t i, JsonView written) {
    const auto& group = out.workers[i];
    const Path path(workers_path, i);
    if (!group.name.empty() && !seen.insert(group.name).second) {
      faults.duplicate({path, "name"}, group.name);
    }
    if (const auto why = why_not_dns1123_label(group.name); !group.name.empty() && !why.empty()) {
      faults.invalid({path, "name"}, group.name, why + suggested_name(group.name));
    }
    check_resources_of(written, group.resources, path, faults);
    return true;
  });
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

std::string suggested_name(std::string_view name) {
  std::string right;
  for (const char c : to_lower(name)) {
    const bool is_letter = c >= 'a' && c <= 'z';
    if (is_letter || (!right.empty() && c >= '0' && c <= '9')) {
      right += c;
    } else if (!right.empty() && right.back() != '-') {
      right += '-';
    }
  }
  while (right.ends_with('-')) right.pop_back();
  if (!why_not_dns1035_label(right).empty()) return "";
  return fmt::format("; did you mean \"{}\"?", right);
}

bool has_coordinator(Operator op) {
  return op == Operator::jax || op == Operator::pytorch || op == Operator::xgboost;
}

Components validate(const api::ExperimentSpec& spec, Faults& faults) {
  const Path root("spec");
  if (!api::is_available(spec.op)) {
    faults.not_available({root, "operator"}, fmt::format("operator '{}'", api::name_of(spec.op)),
                         api::available_operators());
  }
  Components components = read_components(spec, faults);
  check_type_names(spec, components, faults);
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
    if (is_reserved(name)) {
      faults.forbidden({env, name}, "the name is reserved; Grapnel sets it");
    } else if (!matches_pattern("^[A-Za-z_][A-Za-z0-9_]*$", name)) {
      faults.invalid({env, name}, name,
                     "must be the name of a variable: letters, digits and '_', not starting with a "
                     "digit");
    }
  }
  const auto check_name = [&](std::string_view field, const std::optional<std::string>& value,
                              std::string (*why_not)(std::string_view)) {
    const auto why = value ? why_not(*value) : std::string();
    if (!why.empty()) faults.invalid({root, field}, *value, why);
  };
  check_name("queue", spec.queue, [](std::string_view queue) {
    const auto why = why_not_dns1123_subdomain(queue);
    return why.empty() ? why_not_label_value(queue) : why;  // it is the value of a label
  });
  check_name("priorityClass", spec.priority_class, why_not_dns1123_subdomain);
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
