// Gives PersistentVolumeClaims their volumes: one that somebody made and that fits, otherwise a
// directory of this machine. Claims are bound at once: there is only this machine to wait for.
//
// A claim stays while pods use it, and its volume while the claim exists. The node deletes the
// directory together with the PersistentVolume object.
#pragma once

#include <string>
#include <vector>

#include "base/quantity.h"
#include "document/json_view.h"
#include "kube/meta.h"
#include "runtime/plan.h"

namespace grapnel::local {

struct Claim {
  kube::Meta meta;
  Json spec;
  Json status;
  bool operator==(const Claim& other) const;
  bool is_bound() const;
};
Result<Claim> decode_claim(JsonView object);

struct PersistentVolume {
  kube::Meta meta;
  Json spec;
  std::string phase;
  bool operator==(const PersistentVolume& other) const;
  kube::Key claim() const;      // of its claimRef; empty: none
  kube::Uid claim_uid() const;  // empty: reserved by name only, or none
};
Result<PersistentVolume> decode_persistent_volume(JsonView object);

struct ClaimObserved {
  const Claim& claim;
  std::vector<const PersistentVolume*> volumes;  // all there are
  bool in_use = false;    // by a pod that has a node; others are not let near a claim that is going
  std::string directory;  // below which our volumes are
};
runtime::Plan plan(const ClaimObserved& observed);

struct VolumeObserved {
  const PersistentVolume& volume;
  bool has_claim = false;  // the very one it is bound to exists
};
runtime::Plan plan(const VolumeObserved& observed);

}  // namespace grapnel::local
