#include "operators/experiment/code.h"

#include <gtest/gtest.h>

namespace grapnel::experiment {
namespace {

TEST(Code, IsUnpackedBeforeTheProcessStartsInIt) {
  JsonObject pod{{"containers", JsonArray{JsonObject{
                                    {"name", "worker"},
                                    {"image", "trainer:1"},
                                    {"workingDir", "/home"},
                                    {"resources", JsonObject{{"requests", JsonObject{{"cpu", 1}}}}},
                                    {"volumeMounts", JsonArray{JsonObject{{"name", "dshm"}}}}}}},
                 {"volumes", JsonArray{JsonObject{{"name", "dshm"}}}}};
  add_code(pod, "train-code");
  EXPECT_EQ(to_text(pod.at("volumes")),
            R"([{"name":"dshm"},{"name":"code","emptyDir":{}},)"
            R"({"name":"code-archive","configMap":{"name":"train-code"}}])");
  const Json& container = pod.at("containers").as_array()[0];
  EXPECT_EQ(string_or(find(container, "workingDir")), "/mnt/code");
  EXPECT_EQ(to_text(*find(container, "volumeMounts")),
            R"([{"name":"dshm"},{"name":"code","mountPath":"/mnt/code"}])");
  const Json& init = pod.at("initContainers").as_array()[0];
  EXPECT_EQ(string_or(find(init, "image")), "trainer:1");
  EXPECT_EQ(to_text(*find(init, "resources")), to_text(*find(container, "resources")));
  EXPECT_EQ(to_text(*find(init, "command")),
            R"(["tar","-xzof","/mnt/code-archive/code.tar.gz","-C","/mnt/code"])");
}

}  // namespace
}  // namespace grapnel::experiment
