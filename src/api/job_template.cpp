#include "api/job_template.h"

namespace grapnel::api {
namespace {

JsonObject string_map() {
  return {{"type", "object"}, {"additionalProperties", JsonObject{{"type", "string"}}}};
}

JsonObject open_object(JsonObject properties) {
  JsonObject schema{{"type", "object"}, {"x-kubernetes-preserve-unknown-fields", true}};
  if (!properties.empty()) schema["properties"] = std::move(properties);
  return schema;
}

JsonObject metadata_schema() {
  return open_object({{"labels", string_map()},
                      {"annotations", string_map()},
                      {"name", JsonObject{{"type", "string"}}},
                      {"namespace", JsonObject{{"type", "string"}}}});
}

JsonObject list_of_objects() {
  return {{"type", "array"}, {"items", open_object({})}};
}

JsonObject count() {
  return {{"type", "integer"}, {"format", "int32"}};
}

}  // namespace

JsonObject pod_template_schema(std::string_view restart_policy) {
  JsonObject policy{{"type", "string"}};
  if (!restart_policy.empty()) policy["default"] = restart_policy;
  return open_object({{"metadata", metadata_schema()},
                      {"spec", open_object({{"restartPolicy", std::move(policy)},
                                            {"containers", list_of_objects()},
                                            {"initContainers", list_of_objects()},
                                            {"volumes", list_of_objects()},
                                            {"tolerations", list_of_objects()},
                                            {"schedulingGates", list_of_objects()},
                                            {"nodeSelector", string_map()}})}});
}

JsonObject job_template_schema() {
  return open_object(
      {{"metadata", metadata_schema()},
       {"spec",
        open_object({{"parallelism", count()},
                     {"completions", count()},
                     {"backoffLimit", count()},
                     {"suspend", JsonObject{{"type", "boolean"}}},
                     {"completionMode", JsonObject{{"type", "string"}, {"default", "Indexed"}}},
                     {"template", pod_template_schema("OnFailure")}})}});
}

JsonObject volume_claims_schema() {
  return {{"type", "array"},
          {"items", open_object({{"metadata", metadata_schema()}, {"spec", open_object({})}})}};
}

}  // namespace grapnel::api
