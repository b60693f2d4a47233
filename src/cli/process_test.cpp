#include "cli/process.h"

#include <gtest/gtest.h>

namespace grapnel::cli {
namespace {

api::Pod pod(std::string_view labels) {
  return *api::decode_pod(
      *parse_json(fmt::format(R"({{"metadata":{{"name":"p","labels":{{{}}}}}}})", labels)),
      {.all_labels = true});
}

const api::Pod kMaster = pod(R"("grapnel.dev/component":"master","grapnel.dev/rank":"0")");
const api::Pod kWorker =
    pod(R"("grapnel.dev/component":"worker","grapnel.dev/replica":"0","grapnel.dev/rank":"1")");
const api::Pod kBoard =
    pod(R"("grapnel.dev/component":"tensorboard","grapnel.dev/companion":"true")");

TEST(ProcessFilter, TakesProcessesByRankAmongAllOrWithinTheirRole) {
  const auto taken = [](const ProcessFilter& filter) {
    std::string names;
    for (const auto* each : {&kMaster, &kWorker, &kBoard}) {
      if (filter.takes(*each)) names += process_of(*each).name + " ";
    }
    return names;
  };
  EXPECT_EQ(taken({}), "master-0 worker-0 ");
  EXPECT_EQ(taken({.rank = 1}), "worker-0 ");
  EXPECT_EQ(taken({.role = "worker", .rank = 0}), "worker-0 ");
  EXPECT_EQ(taken({.role = "worker", .rank = 1}), "");
  EXPECT_EQ(taken({.companions = true}), "master-0 worker-0 tensorboard ");
  EXPECT_EQ(taken({.role = "tensorboard"}), "tensorboard ");
}

}  // namespace
}  // namespace grapnel::cli
