#include "local/builtin/claims/plan.h"

namespace grapnel::local {
namespace {

Json part(JsonView object, std::string_view key) {
  const auto found = object.find(key);
  return found ? found->to_json() : Json(JsonObject());
}

}  // namespace

bool Claim::operator==(const Claim& other) const {
  return meta == other.meta && equal(spec, other.spec) && equal(status, other.status);
}

bool Claim::is_bound() const {
  return string_or(find(status, "phase")) == "Bound";
}

Result<Claim> decode_claim(JsonView object) {
  auto meta = kube::decode_meta(object);
  if (!meta) return fail(meta.error());
  return Claim{std::move(*meta), part(object, "spec"), part(object, "status")};
}

bool PersistentVolume::operator==(const PersistentVolume& other) const {
  return meta == other.meta && equal(spec, other.spec) && phase == other.phase;
}

kube::Key PersistentVolume::claim() const {
  return {Interned(string_or(at(spec, "claimRef", "namespace"))),
          std::string(string_or(at(spec, "claimRef", "name")))};
}

kube::Uid PersistentVolume::claim_uid() const {
  return kube::Uid(string_or(at(spec, "claimRef", "uid")));
}

Result<PersistentVolume> decode_persistent_volume(JsonView object) {
  auto meta = kube::decode_meta(object, {.annotations = {"pv.kubernetes.io/provisioned-by"}});
  if (!meta) return fail(meta.error());
  const Json status = part(object, "status");
  return PersistentVolume{std::move(*meta), part(object, "spec"),
                          std::string(string_or(find(status, "phase")))};
}

}  // namespace grapnel::local
