#include "local/builtin/claims/plan.h"
#include "local/builtin/scheduler/plan.h"
#include "local/builtin/wiring.h"

namespace grapnel::local {

namespace kinds = kube::kinds;
using runtime::Plan;

void add_claims(runtime::Manager& manager, runtime::Informer<Claim>& claims,
                runtime::Informer<SchedulerPod>& pods, std::string directory) {
  auto& volumes = manager.add_informer<PersistentVolume>({.kind = kinds::kPersistentVolume},
                                                         decode_persistent_volume);
  pods.cache().add_index("claim", [](const SchedulerPod& pod) {
    std::vector<std::string> keys;
    if (pod.node.empty()) return keys;
    for (const auto& claim : pod.claims) keys.push_back(fmt::format("{}/{}", pod.meta.ns(), claim));
    return keys;
  });

  auto plan_claim = [&claims, &volumes, &pods, directory = std::move(directory)](
                        const kube::Key& key, Time,
                        const runtime::Refusal*) -> std::optional<Plan> {
    const auto claim = claims.cache().get(key);
    if (!claim) return std::nullopt;
    ClaimObserved observed{.claim = *claim,
                           .in_use = !pods.cache().indexed("claim", key.text()).empty(),
                           .directory = directory};
    const auto all = volumes.cache().all();
    for (const auto& volume : all) observed.volumes.push_back(volume.get());
    return local::plan(observed);
  };
  // One at a time: two claims must not take the same volume.
  auto& of_claims = manager.add_controller({.name = "persistentvolumeclaim",
                                            .kind = &kinds::kPersistentVolumeClaim,
                                            .plan = std::move(plan_claim),
                                            .at_once = 1});
  manager.watch(claims, of_claims);
  manager.watch_mapped<PersistentVolume>(volumes, of_claims, [](const PersistentVolume& volume) {
    return volume.claim().name.empty() ? std::vector<kube::Key>() : std::vector{volume.claim()};
  });
  manager.watch_mapped<SchedulerPod>(pods, of_claims, [](const SchedulerPod& pod) {
    std::vector<kube::Key> keys;
    for (const auto& claim : pod.claims) keys.push_back({pod.meta.key.ns, claim});
    return keys;
  });

  auto plan_volume = [&claims, &volumes](const kube::Key& key, Time,
                                         const runtime::Refusal*) -> std::optional<Plan> {
    const auto volume = volumes.cache().get(key);
    if (!volume) return std::nullopt;
    const auto claim = claims.cache().get(volume->claim());
    return local::plan(VolumeObserved{
        .volume = *volume, .has_claim = claim && claim->meta.uid == volume->claim_uid()});
  };
  auto& of_volumes = manager.add_controller({.name = "persistentvolume",
                                             .kind = &kinds::kPersistentVolume,
                                             .plan = std::move(plan_volume)});
  manager.watch(volumes, of_volumes);
  volumes.cache().add_index(
      "claim", [](const PersistentVolume& volume) { return std::vector{volume.claim().text()}; });
  manager.watch_mapped<Claim>(claims, of_volumes, [&volumes](const Claim& claim) {
    std::vector<kube::Key> keys;
    for (const auto& volume : volumes.cache().indexed("claim", claim.meta.key.text())) {
      keys.push_back(volume->meta.key);
    }
    return keys;
  });
}

}  // namespace grapnel::local
