#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "document/merge_keys.h"
#include "document/patch.h"

namespace grapnel {
namespace {

using testing::HasSubstr;

std::string patched(std::string_view kind, std::string_view target_text, std::string_view patch) {
  Json target = *parse_json(target_text);
  const Json before = target;
  const auto result = apply_strategic_merge_patch(target, *parse_json(patch), kind);
  if (!result) EXPECT_EQ(target, before) << patch;
  return result ? to_text(target) : "error: " + result.error().message;
}

struct Row {
  std::string_view what, kind, target, patch, result;
};

TEST(StrategicPatch, Merges) {
  const Row rows[] = {
      {"objects merge, null deletes", "ConfigMap", R"({"data":{"a":"1","b":"2"}})",
       R"({"data":{"a":null,"c":"3"}})", R"({"data":{"b":"2","c":"3"}})"},
      {"containers merge by name", "Pod",
       R"({"spec":{"containers":[{"name":"a","image":"1","args":["x"]},{"name":"b"}]}})",
       R"({"spec":{"containers":[{"name":"a","image":"2"}]}})",
       R"({"spec":{"containers":[{"name":"a","image":"2","args":["x"]},{"name":"b"}]}})"},
      {"a new one comes first, as the patch's order has it", "Pod",
       R"({"spec":{"containers":[{"name":"a"}]}})", R"({"spec":{"containers":[{"name":"new"}]}})",
       R"({"spec":{"containers":[{"name":"new"},{"name":"a"}]}})"},
      {"env inside a container merges by name", "Deployment",
       R"({"spec":{"template":{"spec":{"containers":[{"name":"a","env":[{"name":"X","value":"1"},{"name":"Y"}]}]}}}})",
       R"({"spec":{"template":{"spec":{"containers":[{"name":"a","env":[{"name":"X","value":"2"}]}]}}}})",
       R"({"spec":{"template":{"spec":{"containers":[{"name":"a","env":[{"name":"X","value":"2"},{"name":"Y"}]}]}}}})"},
      {"args and tolerations are replaced", "Pod",
       R"({"spec":{"tolerations":[{"key":"a"}],"containers":[{"name":"a","args":["x","y"]}]}})",
       R"({"spec":{"tolerations":[{"key":"b"}],"containers":[{"name":"a","args":["z"]}]}})",
       R"({"spec":{"tolerations":[{"key":"b"}],"containers":[{"name":"a","args":["z"]}]}})"},
      {"finalizers are a set", "Pod", R"({"metadata":{"finalizers":["a","b"]}})",
       R"({"metadata":{"finalizers":["b","c"]}})", R"({"metadata":{"finalizers":["a","b","c"]}})"},
      {"owners merge by uid", "Pod", R"({"metadata":{"ownerReferences":[{"uid":"1","name":"a"}]}})",
       R"({"metadata":{"ownerReferences":[{"uid":"1","controller":true}]}})",
       R"({"metadata":{"ownerReferences":[{"uid":"1","name":"a","controller":true}]}})"},
      {"service ports merge by port", "Service", R"({"spec":{"ports":[{"port":80,"name":"a"}]}})",
       R"({"spec":{"ports":[{"port":80,"targetPort":8080}]}})",
       R"({"spec":{"ports":[{"port":80,"name":"a","targetPort":8080}]}})"},
      {"what is missing is taken without its nulls", "Pod", R"({})",
       R"({"spec":{"a":null,"containers":[{"name":"x","env":null}]}})",
       R"({"spec":{"containers":[{"name":"x"}]}})"},
      {"another type replaces", "Pod", R"({"spec":"text"})", R"({"spec":{"a":1}})",
       R"({"spec":{"a":1}})"},
      {"the selector of a budget is replaced", "PodDisruptionBudget",
       R"({"spec":{"selector":{"matchLabels":{"a":"1"}}}})",
       R"({"spec":{"selector":{"matchLabels":{"b":"2"}}}})",
       R"({"spec":{"selector":{"matchLabels":{"b":"2"}}}})"},
  };
  for (const Row& row : rows) {
    EXPECT_EQ(patched(row.kind, row.target, row.patch), row.result) << row.what;
  }
}

TEST(StrategicPatch, Directives) {
  const Row rows[] = {
      {"$patch: delete in a list", "Pod", R"({"spec":{"containers":[{"name":"a"},{"name":"b"}]}})",
       R"({"spec":{"containers":[{"$patch":"delete","name":"a"}]}})",
       R"({"spec":{"containers":[{"name":"b"}]}})"},
      {"$patch: replace in a list", "Pod", R"({"spec":{"containers":[{"name":"a"},{"name":"b"}]}})",
       R"({"spec":{"containers":[{"name":"c"},{"$patch":"replace"}]}})",
       R"({"spec":{"containers":[{"name":"c"}]}})"},
      {"$patch: replace of an object", "Pod", R"({"spec":{"nodeSelector":{"a":"1"}}})",
       R"({"spec":{"nodeSelector":{"$patch":"replace","b":"2"}}})",
       R"({"spec":{"nodeSelector":{"b":"2"}}})"},
      {"$patch: delete of an object", "Pod", R"({"spec":{"nodeSelector":{"a":"1"}}})",
       R"({"spec":{"nodeSelector":{"$patch":"delete"}}})", R"({"spec":{"nodeSelector":{}}})"},
      {"$patch with nothing there", "Pod", R"({"spec":{}})",
       R"({"spec":{"nodeSelector":{"$patch":"delete"}}})", R"({"spec":{}})"},
      {"$retainKeys drops the rest", "Deployment",
       R"({"spec":{"strategy":{"type":"RollingUpdate","rollingUpdate":{"maxSurge":1}}}})",
       R"({"spec":{"strategy":{"$retainKeys":["type"],"type":"Recreate"}}})",
       R"({"spec":{"strategy":{"type":"Recreate"}}})"},
      {"$retainKeys in an element", "Pod",
       R"({"spec":{"volumes":[{"name":"v","hostPath":{"path":"/x"}}]}})",
       R"({"spec":{"volumes":[{"name":"v","emptyDir":{},"$retainKeys":["name","emptyDir"]}]}})",
       R"({"spec":{"volumes":[{"name":"v","emptyDir":{}}]}})"},
      {"$deleteFromPrimitiveList", "Pod", R"({"metadata":{"finalizers":["a","b","c"]}})",
       R"({"metadata":{"$deleteFromPrimitiveList/finalizers":["b","x"]}})",
       R"({"metadata":{"finalizers":["a","c"]}})"},
      {"$setElementOrder alone", "Pod",
       R"({"spec":{"containers":[{"name":"a"},{"name":"b"},{"name":"c"}]}})",
       R"({"spec":{"$setElementOrder/containers":[{"name":"c"},{"name":"a"}]}})",
       R"({"spec":{"containers":[{"name":"b"},{"name":"c"},{"name":"a"}]}})"},
      {"$setElementOrder with its list, a sidecar stays", "Pod",
       R"({"spec":{"containers":[{"name":"a"},{"name":"side"},{"name":"b"}]}})",
       R"({"spec":{"$setElementOrder/containers":[{"name":"b"},{"name":"new"},{"name":"a"}],"containers":[{"name":"new"}]}})",
       R"({"spec":{"containers":[{"name":"side"},{"name":"b"},{"name":"new"},{"name":"a"}]}})"},
      {"a renamed container, as kubectl apply sends it", "Pod",
       R"({"spec":{"containers":[{"name":"b"},{"name":"old"}]}})",
       R"({"spec":{"$setElementOrder/containers":[{"name":"new"}],"containers":[{"name":"new"},{"$patch":"delete","name":"old"}]}})",
       R"({"spec":{"containers":[{"name":"b"},{"name":"new"}]}})"},
      {"$setElementOrder of scalars", "Pod", R"({"metadata":{"finalizers":["a","b"]}})",
       R"({"metadata":{"$setElementOrder/finalizers":["b","a"],"finalizers":["b"]}})",
       R"({"metadata":{"finalizers":["b","a"]}})"},
      {"$setElementOrder of what is not there", "Pod", R"({"spec":{}})",
       R"({"spec":{"$setElementOrder/containers":[{"name":"a"}]}})", R"({"spec":{}})"},
      {"directives of a new object are dropped", "Pod", R"({})",
       R"({"metadata":{"$setElementOrder/finalizers":["a"],"finalizers":["a"],"labels":{"$retainKeys":["x"],"x":"1"}}})",
       R"({"metadata":{"finalizers":["a"],"labels":{"x":"1"}}})"},
  };
  for (const Row& row : rows) {
    EXPECT_EQ(patched(row.kind, row.target, row.patch), row.result) << row.what;
  }
}

TEST(StrategicPatch, Refusals) {
  constexpr std::string_view kPod =
      R"({"metadata":{"finalizers":["a"]},"spec":{"containers":[{"name":"a"}],"dnsConfig":{}}})";
  const Row rows[] = {
      {"a kind that is not built in", "RayCluster", "{}", "{}", "not supported for RayCluster"},
      {"no object", "Pod", kPod, "[]", "must be an object"},
      {"no merge key", "Pod", kPod, R"({"spec":{"containers":[{"image":"x"}]}})", "has no name"},
      {"null as merge key", "Pod", kPod, R"({"spec":{"containers":[{"name":null}]}})",
       "has no name"},
      {"scalars where objects merge", "Pod", kPod, R"({"spec":{"containers":["x"]}})",
       "objects were expected"},
      {"objects in a set", "Pod", kPod, R"({"metadata":{"finalizers":[{}]}})",
       "scalars were expected"},
      {"lists in a set", "Pod", kPod, R"({"metadata":{"finalizers":[["a"]]}})",
       "scalars were expected"},
      {"delete without key", "Pod", kPod, R"({"spec":{"containers":[{"$patch":"delete"}]}})",
       "needs name"},
      {"$patch: merge in a list", "Pod", kPod,
       R"({"spec":{"containers":[{"$patch":"merge","name":"a"}]}})", "must be delete or replace"},
      {"odd $patch", "Pod", kPod, R"({"spec":{"dnsConfig":{"$patch":"merge"}}})",
       "must be replace or delete"},
      {"$retainKeys without what is set", "Pod", kPod, R"({"spec":{"$retainKeys":["x"],"y":1}})",
       "sets y"},
      {"$retainKeys no list", "Pod", kPod, R"({"spec":{"$retainKeys":1}})", "must be a list"},
      {"$deleteFromPrimitiveList no list", "Pod", kPod,
       R"({"metadata":{"$deleteFromPrimitiveList/finalizers":1}})", "must be a list"},
      {"$deleteFromPrimitiveList of objects", "Pod", kPod,
       R"({"spec":{"$deleteFromPrimitiveList/containers":["a"]}})", "not a list of scalars"},
      {"$setElementOrder no list", "Pod", kPod, R"({"spec":{"$setElementOrder/containers":1}})",
       "must be lists"},
      {"$setElementOrder of an atomic list", "Pod", R"({"spec":{"tolerations":[]}})",
       R"({"spec":{"$setElementOrder/tolerations":[]}})", "does not merge"},
      {"$setElementOrder in another order", "Pod", kPod,
       R"({"spec":{"$setElementOrder/containers":[{"name":"a"},{"name":"b"}],"containers":[{"name":"b"},{"name":"a"}]}})",
       "does not match"},
  };
  for (const Row& row : rows) {
    EXPECT_THAT(patched(row.kind, row.target, row.patch), HasSubstr(row.result)) << row.what;
  }
}

TEST(StrategicPatch, LongListsTakeNoLongTime) {
  JsonArray before;
  JsonArray after;
  for (int i = 0; i < 50'000; ++i) {
    before.push_back({{"name", fmt::format("n{}", i)}});
    after.push_back({{"name", fmt::format("n{}", 75'000 - i)}, {"value", "x"}});
  }
  Json target = {{"spec", {{"containers", {{{"name", "a"}, {"env", before}}}}}}};
  const Json patch = {{"spec", {{"containers", {{{"name", "a"}, {"env", after}}}}}}};
  ASSERT_TRUE(apply_strategic_merge_patch(target, patch, "Pod"));
  EXPECT_EQ(at(target, "spec", "containers")->as_array()[0].at("env").as_array().size(), 75'001U);
}

TEST(MergeKeys, AreThoseOfTheApiTypes) {
  struct KeyRow {
    std::string_view kind, path;
    std::optional<std::string_view> key;
  };
  const KeyRow rows[] = {
      {"Pod", "spec.containers", "name"},
      {"Pod", "spec.containers[0].env", "name"},
      {"Pod", "spec.containers.ports", "containerPort"},
      {"Pod", "spec.ephemeralContainers.volumeMounts", "mountPath"},
      {"Pod", "spec.initContainers.volumeDevices", "devicePath"},
      {"Pod", "spec.hostAliases", "ip"},
      {"Pod", "spec.topologySpreadConstraints", "topologyKey"},
      {"Pod", "spec.tolerations", {}},
      {"Pod", "spec.containers.args", {}},
      {"Pod", "spec.containers.envFrom", {}},
      {"Pod", "metadata.finalizers", ""},
      {"Pod", "status.conditions", "type"},
      {"Pod", "status.containerStatuses", {}},
      {"Pod", "containers", {}},
      {"Job", "spec.template.spec.volumes", "name"},
      {"Job", "status.conditions", "type"},
      {"CronJob", "spec.jobTemplate.spec.template.spec.imagePullSecrets", "name"},
      {"CronJob", "spec.jobTemplate.metadata.ownerReferences", "uid"},
      {"StatefulSet", "spec.template.metadata.finalizers", ""},
      {"StatefulSet", "spec.volumeClaimTemplates", {}},
      {"Service", "spec.ports", "port"},
      {"ServiceAccount", "secrets", "name"},
      {"ServiceAccount", "imagePullSecrets", {}},
      {"Node", "status.addresses", "type"},
      {"Node", "spec.taints", {}},
      {"Endpoints", "subsets", {}},
      {"PersistentVolumeClaim", "status.conditions", "type"},
      {"RayCluster", "metadata.finalizers", {}},
  };
  for (const KeyRow& row : rows) {
    EXPECT_EQ(merge_key_of(row.kind, row.path), row.key) << row.kind << " " << row.path;
  }
  for (const std::string_view kind : {"APIService", "Pod", "Lease", "VolumeAttachment", "Event"}) {
    EXPECT_TRUE(is_built_in_kind(kind)) << kind;
  }
}

}  // namespace
}  // namespace grapnel
