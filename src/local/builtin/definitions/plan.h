// Deletes a CustomResourceDefinition: its objects go first.
#pragma once

#include <vector>

#include "kube/kind.h"
#include "kube/meta.h"
#include "runtime/plan.h"

namespace grapnel::local {

struct DefinitionObserved {
  const kube::Meta& meta;
  const kube::Kind* kind = nullptr;  // that it defines; nullptr: it is not served
  std::vector<const kube::Meta*> objects;
  bool knows_all = false;  // no object is missing
};
runtime::Plan plan(const DefinitionObserved& observed);

}  // namespace grapnel::local
