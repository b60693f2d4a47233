#include "cli/plan_text.h"

#include <gtest/gtest.h>

#include "operators/experiment/manifest.h"

namespace grapnel::cli {
namespace {

constexpr std::string_view kManifest = R"(kind: AIchorManifest
apiVersion: 0.2.3
spec:
  operator: jobset
  image: trainer:1
  command: train
  types:
    master:
      resources: {cpus: 1, ramRatio: 2}
    worker:
      count: 2
      completions: 3
      resources: {cpus: 2, memory: 8, accelerators: {gpu: {count: 1}}}
)";

struct PlanText : testing::Test {
  PlanText() {
    const auto manifest = experiment::parse_manifest(kManifest, "manifest.yaml");
    EXPECT_TRUE(manifest) << manifest.error().message;
    object = experiment::experiment_of(*manifest, "train", "default");
    compiled = experiment::check_and_compile(*api::decode_resource<api::Experiment>(object));
    EXPECT_TRUE(compiled) << compiled.error().message;
  }
  std::string text(const Json* existing = nullptr) const {
    return plan_text({.where = "the laptop cluster 'default', namespace default",
                      .experiment = object,
                      .child = *compiled,
                      .existing = existing});
  }
  Json object;
  Result<experiment::Compiled> compiled = fail(Reason::kUnknown, "not compiled");
};

TEST_F(PlanText, SaysWhatWouldBeMadeAndWhatItAsksFor) {
  EXPECT_EQ(text(),
            "On the laptop cluster 'default', namespace default:\n"
            "  + Experiment train: jobset, image trainer:1\n"
            "  + JobSet train\n"
            "      master: 1 Job of 1 pod, each with 1 CPU (at most 2), 2Gi of memory\n"
            "      worker: 2 Jobs of 3 pods, each with 2 CPUs (at most 4), 8Gi of memory, "
            "1 nvidia.com/gpu\n"
            "Total: 7 pods, which request 13 CPUs, 50Gi of memory, 6 nvidia.com/gpu.\n");
}

TEST_F(PlanText, OfOneThatExistsSaysWhatDiffers) {
  Json existing = object;
  existing.as_object()["status"] = JsonObject{{"phase", "Succeeded"}};
  existing.at("spec").as_object()["backoffLimit"] = 0;  // a default of the server's
  EXPECT_EQ(text(&existing),
            "On the laptop cluster 'default', namespace default:\n"
            "  ! Experiment train exists already (Succeeded) and asks for the same\n"
            "    `grapnel submit` would be refused: choose another --name, or `grapnel delete "
            "train` first\n");
  existing.at("spec").as_object()["image"] = "trainer:0";
  const auto differs = text(&existing);
  EXPECT_NE(differs.find("(Succeeded) and differs:\n"), std::string::npos) << differs;
  EXPECT_NE(differs.find("      spec.image: \"trainer:0\" → \"trainer:1\"\n"), std::string::npos)
      << differs;
}

}  // namespace
}  // namespace grapnel::cli
