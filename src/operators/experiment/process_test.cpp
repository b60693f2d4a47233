#include "operators/experiment/process.h"

#include <gtest/gtest.h>

namespace grapnel::experiment {
namespace {

struct Case {
  std::string name;
  std::string labels;
  std::string is;  // name, replica, rank
};

class ProcessIdOf : public testing::TestWithParam<Case> {};

TEST_P(ProcessIdOf, ItsLabels) {
  const Case& c = GetParam();
  const auto pod = decode_process(*parse_json(
      R"({"metadata":{"name":"p","namespace":"ns","labels":{"grapnel.dev/experiment":"e",)" +
      c.labels + "}}}"));
  ASSERT_TRUE(pod) << pod.error().message;
  const ProcessId id = process_id(pod->meta);
  EXPECT_EQ(id.experiment, "e");
  EXPECT_EQ(fmt::format("{} {} {}", id.name, id.replica, id.rank), c.is);
}

INSTANTIATE_TEST_SUITE_P(
    Table, ProcessIdOf,
    testing::Values(Case{"ThatSayAll",
                         R"("grapnel.dev/component":"workers","grapnel.dev/replica":"2",
              "grapnel.dev/rank":"3")",
                         "workers-2 2 3"},
                    Case{"OfTheOnlyJob", R"("grapnel.dev/component":"worker",
              "jobset.sigs.k8s.io/job-index":"0","jobset.sigs.k8s.io/global-replicas":"1",
              "batch.kubernetes.io/job-completion-index":"4")",
                         "worker-4 4 4"},
                    Case{"OfOneOfSeveralJobs", R"("grapnel.dev/component":"worker",
              "grapnel.dev/first-rank":"1","grapnel.dev/job-size":"4",
              "jobset.sigs.k8s.io/job-index":"2","jobset.sigs.k8s.io/global-replicas":"7",
              "batch.kubernetes.io/job-completion-index":"3")",
                         "worker-2-3 11 12"},
                    Case{"OfAJobThatAClusterRunsAlone", R"("grapnel.dev/component":"worker",
              "batch.kubernetes.io/job-completion-index":"0")",
                         "worker-0 0 0"},
                    Case{"WithoutAnyNumber", R"("grapnel.dev/component":"worker")", "worker-0 0 0"},
                    Case{"OfACompanion", R"("grapnel.dev/component":"tensorboard",
              "grapnel.dev/companion":"true")",
                         "tensorboard 0 0"}),
    [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace grapnel::experiment
