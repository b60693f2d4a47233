#include "api/node.h"

#include "api/fields.h"

namespace grapnel::api {

Result<Node> decode_node(JsonView object, const kube::MetaOptions& kept) {
  auto meta = kube::decode_meta(object, kept);
  if (!meta) return fail(std::move(meta.error()));
  Node node{.meta = std::move(*meta),
            .unschedulable = bool_at(object.find("spec"), "unschedulable")};
  for_each_at(object.find("status"), "conditions", [&](JsonView condition) {
    if (text_at(condition, "type") == "Ready") node.ready = text_at(condition, "status") == "True";
  });
  return node;
}

}  // namespace grapnel::api
