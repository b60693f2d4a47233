#include "local/builtin/claims/plan.h"

#include <algorithm>

#include "document/elements.h"

namespace grapnel::local {
namespace {

using runtime::Event;
using runtime::ObjectRef;
using runtime::Patch;
using runtime::Plan;

constexpr std::string_view kClaimProtection = "kubernetes.io/pvc-protection";
constexpr std::string_view kVolumeProtection = "kubernetes.io/pv-protection";
constexpr std::string_view kProvisioner = "grapnel.dev/directory";

ObjectRef ref(const Claim& claim) {
  return {&kube::kinds::kPersistentVolumeClaim, claim.meta.key, claim.meta.uid};
}

ObjectRef ref(const PersistentVolume& volume) {
  return {&kube::kinds::kPersistentVolume, volume.meta.key, volume.meta.uid};
}

Json copy_or(const Json* value, Json otherwise) {
  return value == nullptr ? std::move(otherwise) : *value;
}

void remove_finalizer(Plan& plan, const ObjectRef& target, const kube::Meta& meta,
                      std::string_view name) {
  JsonArray others;
  for (const auto& finalizer : meta.finalizers) {
    if (finalizer.view() != name) others.emplace_back(finalizer.view());
  }
  if (others.size() == meta.finalizers.size()) return;
  plan.add(Patch{.target = target,
                 .body = JsonObject{{"metadata", JsonObject{{"finalizers", std::move(others)}}}},
                 .if_version = meta.resource_version});
}

std::string own_volume(const Claim& claim) {
  return "pvc-" + claim.meta.uid.text();
}

Quantity storage_of(const Json* amounts) {
  const Json* storage = amounts == nullptr ? nullptr : find(*amounts, "storage");
  return Quantity::parse(string_or(storage)).value_or(Quantity());
}

bool offers_modes(const PersistentVolume& volume, const Claim& claim) {
  const JsonArray& offered = elements(find(volume.spec, "accessModes"));
  return std::ranges::all_of(elements(find(claim.spec, "accessModes")), [&](const Json& asked) {
    return std::ranges::any_of(offered, [&](const Json& one) { return equal(one, asked); });
  });
}

bool is_reserved_for(const PersistentVolume& volume, const Claim& claim) {
  return volume.claim() == claim.meta.key &&
         (volume.claim_uid().empty() || volume.claim_uid() == claim.meta.uid);
}

bool fits(const PersistentVolume& volume, const Claim& claim) {
  if (is_reserved_for(volume, claim)) return true;
  return volume.claim().name.empty() && !volume.meta.is_being_deleted() &&
         string_or(find(volume.spec, "storageClassName")) ==
             string_or(find(claim.spec, "storageClassName")) &&
         offers_modes(volume, claim) &&
         storage_of(find(volume.spec, "capacity")) >=
             storage_of(at(claim.spec, "resources", "requests"));
}

// The one it names, else the one reserved for it, else the smallest that fits.
const PersistentVolume* volume_for(const ClaimObserved& o) {
  const auto named = string_or(find(o.claim.spec, "volumeName"));
  const PersistentVolume* best = nullptr;
  for (const auto* volume : o.volumes) {
    if (!named.empty()) {
      if (volume->meta.name() == named) return volume;
      continue;
    }
    if (!fits(*volume, o.claim)) continue;
    if (is_reserved_for(*volume, o.claim)) return volume;
    const auto size = [](const PersistentVolume& v) {
      return storage_of(find(v.spec, "capacity"));
    };
    if (best == nullptr || size(*volume) < size(*best)) best = volume;
  }
  return best;
}

Json claim_reference(const Claim& claim) {
  return JsonObject{{"apiVersion", "v1"},
                    {"kind", "PersistentVolumeClaim"},
                    {"namespace", claim.meta.ns()},
                    {"name", claim.meta.name()},
                    {"uid", claim.meta.uid.text()}};
}

Json new_volume(const ClaimObserved& o) {
  const Claim& claim = o.claim;
  const std::string name = own_volume(claim);
  JsonObject spec{{"accessModes", copy_or(find(claim.spec, "accessModes"), JsonArray())},
                  {"capacity", copy_or(at(claim.spec, "resources", "requests"), JsonObject())},
                  {"claimRef", claim_reference(claim)},
                  {"hostPath", JsonObject{{"path", fmt::format("{}/{}", o.directory, name)},
                                          {"type", "DirectoryOrCreate"}}},
                  {"persistentVolumeReclaimPolicy", "Delete"}};
  if (const Json* name_of_class = find(claim.spec, "storageClassName")) {
    spec["storageClassName"] = *name_of_class;
  }
  return JsonObject{
      {"apiVersion", "v1"},
      {"kind", "PersistentVolume"},
      {"metadata",
       JsonObject{{"name", name},
                  {"annotations", JsonObject{{"pv.kubernetes.io/provisioned-by", kProvisioner}}},
                  {"finalizers", JsonArray{kVolumeProtection}}}},
      {"spec", std::move(spec)}};
}

void set_phase(Plan& plan, const PersistentVolume& volume, std::string_view phase) {
  if (volume.phase == phase) return;
  plan.add(Patch{.target = ref(volume),
                 .body = JsonObject{{"status", JsonObject{{"phase", phase}}}},
                 .subresource = "status"});
}

void bind(Plan& plan, const Claim& claim, const PersistentVolume& volume) {
  if (volume.claim_uid() != claim.meta.uid) {
    plan.add(Patch{.target = ref(volume),
                   .body = JsonObject{{"spec", JsonObject{{"claimRef", claim_reference(claim)}}}},
                   .if_version = volume.meta.resource_version});
    plan.then();
  }
  set_phase(plan, volume, "Bound");
  if (string_or(find(claim.spec, "volumeName")) != volume.meta.name()) {
    plan.add(Patch{
        .target = ref(claim),
        .body = JsonObject{
            {"metadata", JsonObject{{"annotations",
                                     JsonObject{{"pv.kubernetes.io/bind-completed", "yes"},
                                                {"pv.kubernetes.io/bound-by-controller", "yes"}}}}},
            {"spec", JsonObject{{"volumeName", volume.meta.name()}}}}});
  }
  plan.set_status(
      ref(claim), claim.status,
      JsonObject{{"phase", "Bound"},
                 {"accessModes", copy_or(find(volume.spec, "accessModes"), JsonArray())},
                 {"capacity", copy_or(find(volume.spec, "capacity"), JsonObject())}});
}

}  // namespace

Plan plan(const ClaimObserved& o) {
  Plan plan;
  const Claim& claim = o.claim;
  if (claim.meta.is_being_deleted()) {
    if (!o.in_use) remove_finalizer(plan, ref(claim), claim.meta, kClaimProtection);
    return plan;
  }
  const PersistentVolume* volume = volume_for(o);
  const auto named = string_or(find(claim.spec, "volumeName"));
  if (volume != nullptr && (volume->claim().name.empty() || is_reserved_for(*volume, claim))) {
    bind(plan, claim, *volume);
    if (!claim.is_bound() && volume->meta.name() == own_volume(claim)) {
      plan.emit(ref(claim), Event::Type::kNormal, "ProvisioningSucceeded",
                fmt::format("Successfully provisioned volume {}", volume->meta.name()));
    }
  } else if (claim.is_bound()) {
    plan.set_status(ref(claim), claim.status, JsonObject{{"phase", "Lost"}});
    plan.emit(ref(claim), Event::Type::kWarning, "ClaimLost",
              "Bound claim has lost its PersistentVolume. Data on the volume is lost!");
  } else if (named.empty()) {
    plan.add(runtime::Create{&kube::kinds::kPersistentVolume, new_volume(o)});
  } else {
    const char* why = volume == nullptr ? "not found" : "already bound to a different claim.";
    plan.emit(ref(claim), Event::Type::kWarning, "FailedBinding",
              fmt::format("volume \"{}\" {}", named, why));
  }
  return plan;
}

Plan plan(const VolumeObserved& o) {
  Plan plan;
  const PersistentVolume& volume = o.volume;
  if (volume.meta.is_being_deleted()) {
    if (!o.has_claim) remove_finalizer(plan, ref(volume), volume.meta, kVolumeProtection);
  } else if (volume.claim_uid().empty()) {
    set_phase(plan, volume, "Available");
  } else if (!o.has_claim) {
    const bool ours =
        volume.meta.annotations.get("pv.kubernetes.io/provisioned-by") == kProvisioner;
    if (ours && string_or(find(volume.spec, "persistentVolumeReclaimPolicy")) == "Delete") {
      plan.add(runtime::Delete{ref(volume)});
    } else {
      set_phase(plan, volume, "Released");
    }
  }
  return plan;
}

}  // namespace grapnel::local
