#include "operators/jobset/gang.h"

#include <array>
#include <map>

#include "base/quantity.h"
#include "operators/common/object.h"
#include "operators/jobset/names.h"

namespace grapnel::jobset {
namespace {

constexpr std::string_view kVolcano = "volcano";
// The scheduler reads the first, its GPU sharing the second.
constexpr auto kGroupOfPod = std::to_array<std::string_view>(
    {"scheduling.k8s.io/group-name", "scheduling.volcano.sh/group-name"});
constexpr std::string_view kTaskOfPod = "volcano.sh/task-spec";

using Resources = std::map<std::string, Quantity>;

// What a container asks for: its requests, and its limits where it names no request.
void add_container(const Json& container, int64_t times, Resources& sum) {
  Resources own;
  for (const std::string_view part : {"limits", "requests"}) {
    const Json* given = at(container, "resources", part);
    if (given == nullptr || !given->is_object()) continue;
    for (const auto& [name, value] : given->get_object()) {
      const auto text =
          value.is_int64() ? std::to_string(value.get_int64()) : std::string(string_or(&value));
      if (const auto quantity = Quantity::parse(text)) own[std::string(name)] = *quantity;
    }
  }
  for (const auto& [name, quantity] : own) sum[name] = sum[name] + quantity * times;
}

int64_t pods_of(const api::ReplicatedJob& replicated) {
  const int64_t parallelism = replicated.parallelism().value_or(1);
  return replicated.replicas *
         std::min(parallelism, int64_t{replicated.completions().value_or(parallelism)});
}

// A group has a priority of its own, by which it waits among others.
std::string_view priority_class(const api::JobSet& jobset) {
  for (const auto& replicated : jobset.spec.replicated_jobs) {
    const Json* pod = replicated.pod_spec();
    const auto name = pod != nullptr ? string_or(find(*pod, "priorityClassName")) : "";
    if (!name.empty()) return name;
  }
  return "";
}

// Those that wait for others do not start with the gang.
bool starts_at_once(const api::JobSet& jobset, const api::ReplicatedJob& replicated) {
  const bool first = &replicated == &jobset.spec.replicated_jobs.front();
  return replicated.depends_on.empty() &&
         (first || jobset.spec.startup_policy.order == api::StartupOrder::AnyOrder);
}

}  // namespace

bool wants_gang(const api::JobSet& jobset) {
  return jobset.meta.annotations.get(keys::kGangScheduler) == kVolcano;
}

runtime::Apply pod_group(const api::JobSet& jobset) {
  int64_t pods = 0;
  Resources sum;
  for (const auto& replicated : jobset.spec.replicated_jobs) {
    if (!starts_at_once(jobset, replicated)) continue;
    pods += pods_of(replicated);
    const Json* containers =
        replicated.pod_spec() != nullptr ? find(*replicated.pod_spec(), "containers") : nullptr;
    if (containers == nullptr || !containers->is_array()) continue;
    for (const Json& container : containers->get_array()) {
      add_container(container, pods_of(replicated), sum);
    }
  }
  JsonObject spec{{"minMember", pods}};
  JsonObject resources;
  for (const auto& [name, quantity] : sum) resources[name] = quantity.text();
  if (!resources.empty()) spec["minResources"] = std::move(resources);
  const auto priority = priority_class(jobset);
  if (!priority.empty()) spec["priorityClassName"] = priority;
  const auto queue = jobset.meta.annotations.get(keys::kGangQueue);
  if (!queue.empty()) spec["queue"] = queue;
  return {.kind = &kPodGroup,
          .object =
              JsonObject{{"apiVersion", kPodGroup.api_version()},
                         {"kind", kPodGroup.kind},
                         {"metadata", JsonObject{{"name", jobset.meta.name()},
                                                 {"namespace", jobset.meta.ns()},
                                                 {"ownerReferences", operators::owned_by(jobset)}}},
                         {"spec", std::move(spec)}},
          .uid = {}};
}

void join_gang(const api::JobSet& jobset, const api::ReplicatedJob& replicated,
               JsonObject& pod_template) {
  JsonObject& annotations = ensure_object(ensure_object(pod_template, "metadata"), "annotations");
  for (const auto key : kGroupOfPod) annotations[key] = jobset.meta.name();
  if (!annotations.contains(kTaskOfPod)) annotations[kTaskOfPod] = replicated.name;
  ensure_object(pod_template, "spec")["schedulerName"] = kVolcano;
}

}  // namespace grapnel::jobset
