#include "operators/common/object.h"

namespace grapnel::operators {

runtime::ObjectRef ref_to(const kube::Kind& kind, const kube::Meta& meta) {
  return {.kind = &kind, .key = meta.key, .uid = meta.uid};
}

JsonObject owner_reference(const kube::Kind& kind, const kube::Meta& meta) {
  return {{"apiVersion", kind.api_version()}, {"kind", kind.kind},  {"name", meta.name()},
          {"uid", meta.uid.text()},           {"controller", true}, {"blockOwnerDeletion", true}};
}

}  // namespace grapnel::operators
