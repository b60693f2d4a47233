#include "operators/experiment/manifest.h"

#include <gtest/gtest.h>

#include "operators/experiment/components.h"

namespace grapnel::experiment {
namespace {

constexpr std::string_view kJax = R"(kind: AIchorManifest
apiVersion: 0.2.3
spec:
  operator: jax
  image: image
  command: "python3 -u main.py"
  types:
    worker:
      count: 2
      resources:
        cpus: 1
        ramRatio: 2
)";

TEST(Manifest, ReadsWhatTheDocumentationShows) {
  const auto manifest = parse_manifest(kJax, "manifest.yaml");
  ASSERT_TRUE(manifest) << manifest.error().message;
  EXPECT_EQ(manifest->decoded.op, api::Operator::jax);
  api::Faults faults;
  const Components components = validate(manifest->decoded, faults);
  ASSERT_EQ(components.named.size(), 1U);
  EXPECT_EQ(components.named[0].first, "worker");
  EXPECT_EQ(components.named[0].second.count, 2);
}

// Many more, as a person sees them, are in tests/manifests.
TEST(Manifest, AnErrorHasACauseForEachFault) {
  std::string text(kJax);
  text.replace(text.find("worker:"), 7, "Worker:");
  text.replace(text.find("command:"), 8, "comand:");
  const auto manifest = parse_manifest(text, "m.yaml");
  ASSERT_FALSE(manifest);
  ASSERT_EQ(manifest.error().causes.size(), 2U) << manifest.error().message;
  EXPECT_EQ(manifest.error().causes[0].field, "spec.comand");
  EXPECT_EQ(manifest.error().causes[1].field, "spec.types.Worker");
  EXPECT_TRUE(manifest.error().message.ends_with(
      "\nm.yaml:8:5: spec.types.Worker: unknown type for operator 'jax'\n"
      "  found    Worker\n"
      "  allowed  worker   (lower case)"))
      << manifest.error().message;
}

TEST(Manifest, BrokenYamlNamesTheLine) {
  const auto manifest = parse_manifest("kind: [", "m.yaml");
  ASSERT_FALSE(manifest);
  EXPECT_TRUE(manifest.error().message.starts_with("m.yaml:")) << manifest.error().message;
}

}  // namespace
}  // namespace grapnel::experiment
