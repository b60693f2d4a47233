#include "local/builtin/wiring.h"
#include "local/builtin/workload/plan.h"

namespace grapnel::local {
namespace {

namespace kinds = kube::kinds;
using runtime::Informer;
using runtime::Manager;
using runtime::Plan;

void add_replica_sets(Manager& manager, Informer<ReplicaSet>& sets) {
  auto& pods = manager.add_informer<WorkloadPod>({.kind = kinds::kPod}, decode_workload_pod);
  pods.cache().add_index("orphans", [](const WorkloadPod& pod) {
    return pod.meta.controller() == nullptr ? std::vector{std::string(pod.meta.ns())}
                                            : std::vector<std::string>();
  });
  auto plan = [&](const kube::Key& key, Time now, const runtime::Refusal*) -> std::optional<Plan> {
    const auto set = sets.cache().get(key);
    if (!set) return std::nullopt;
    const auto owned = pods.cache().controlled_by(set->meta.uid);
    const auto orphans = pods.cache().indexed("orphans", key.ns.str());
    ReplicaSetObserved observed{.set = *set};
    for (const auto& pod : owned) observed.pods.push_back(pod.get());
    for (const auto& pod : orphans) observed.orphans.push_back(pod.get());
    return local::plan(observed, now);
  };
  auto& controller = manager.add_controller(
      {.name = "replicaset", .kind = &kinds::kReplicaSet, .plan = std::move(plan)});
  manager.watch(sets, controller);
  manager.watch_owned(pods, controller);
  // A pod that nobody controls may be anyone's.
  manager.watch_mapped<WorkloadPod>(pods, controller, [&sets](const WorkloadPod& pod) {
    std::vector<kube::Key> keys;
    if (pod.meta.controller() != nullptr) return keys;
    for (const auto& set : sets.cache().all()) {
      if (set->meta.key.ns == pod.meta.key.ns) keys.push_back(set->meta.key);
    }
    return keys;
  });
}

}  // namespace

void add_workloads(Manager& manager) {
  auto& sets = manager.add_informer<ReplicaSet>({.kind = kinds::kReplicaSet}, decode_replica_set);
  auto& deployments =
      manager.add_informer<Deployment>({.kind = kinds::kDeployment}, decode_deployment);
  add_replica_sets(manager, sets);
  auto plan = [&](const kube::Key& key, Time now, const runtime::Refusal*) -> std::optional<Plan> {
    const auto deployment = deployments.cache().get(key);
    if (!deployment) return std::nullopt;
    DeploymentObserved observed{.deployment = *deployment};
    const auto owned = sets.cache().controlled_by(deployment->meta.uid);
    for (const auto& set : owned) observed.sets.push_back(set.get());
    return local::plan(observed, now);
  };
  auto& controller = manager.add_controller(
      {.name = "deployment", .kind = &kinds::kDeployment, .plan = std::move(plan)});
  manager.watch(deployments, controller);
  manager.watch_owned(sets, controller);
}

}  // namespace grapnel::local
