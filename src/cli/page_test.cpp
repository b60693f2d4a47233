#include "cli/page.h"

#include <gtest/gtest.h>

namespace grapnel::cli {
namespace {

TEST(Page, IsWhereTheManifestPutIt) {
  api::Experiment experiment;
  experiment.spec.op = api::Operator::kuberay;
  experiment.spec.tensorboard = api::Toggle{.enabled = true};
  experiment.spec.debug = api::Debug{.jupyter = api::Jupyter{.enabled = true, .path = "lab"}};
  EXPECT_EQ(page_of(experiment, "jupyter")->path, "/lab");
  EXPECT_EQ(page_of(experiment, "jupyter")->port, 8888);
  EXPECT_EQ(page_of(experiment, "tensorboard")->port, 6006);
  EXPECT_EQ(page_of(experiment, "ray")->role, "head");
}

TEST(Page, OneThatIsNotAskedForIsAnErrorThatSaysHow) {
  api::Experiment experiment;
  experiment.meta.key.name = "train";
  experiment.spec.op = api::Operator::jax;
  for (const auto& [what, words] : std::vector<std::pair<const char*, const char*>>{
           {"jupyter", "'train' has no Jupyter: spec.debug.jupyter.enabled"},
           {"tensorboard", "spec.tensorboard.enabled"},
           {"ray", "its operator is jax"}}) {
    const auto page = page_of(experiment, what);
    ASSERT_FALSE(page) << what;
    EXPECT_NE(page.error().message.find(words), std::string::npos) << page.error().message;
  }
}

}  // namespace
}  // namespace grapnel::cli
