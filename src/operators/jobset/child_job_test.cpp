#include "operators/jobset/child_job.h"

#include <gtest/gtest.h>

namespace grapnel::jobset {
namespace {

Result<ChildJob> decode(std::string_view labels) {
  return decode_child_job(
      parse_json(fmt::format(R"({{"metadata":{{"name":"j","namespace":"n","labels":{}}},
                                  "spec":{{"parallelism":4}}}})",
                             labels))
          .value());
}

TEST(ChildJob, KnowsItsPlaceByItsLabels) {
  const auto job = decode(R"({"jobset.sigs.k8s.io/replicatedjob-name":"w",
      "jobset.sigs.k8s.io/job-index":"3","jobset.sigs.k8s.io/restart-attempt":"2",
      "jobset.sigs.k8s.io/job-restart-attempt":"1"})");
  ASSERT_TRUE(job);
  EXPECT_EQ(job->place, (JobPlace{Interned("w"), 3, 2, 1}));
  EXPECT_EQ(job->parallelism, 4);
  EXPECT_FALSE(job->meta.labels.has("jobset.sigs.k8s.io/job-index")) << "they are kept twice";
  ChildJob other = *job;
  EXPECT_EQ(other, *job);
  other.place->restart_attempt = 3;
  EXPECT_NE(other, *job);
}

TEST(ChildJob, LabelsThatWereTamperedWithAreNoPlace) {
  for (const auto* labels :
       {R"({})", R"({"jobset.sigs.k8s.io/replicatedjob-name":"w"})",
        R"({"jobset.sigs.k8s.io/replicatedjob-name":"w","jobset.sigs.k8s.io/job-index":"x",
            "jobset.sigs.k8s.io/restart-attempt":"0"})",
        R"({"jobset.sigs.k8s.io/replicatedjob-name":"w","jobset.sigs.k8s.io/job-index":"0",
            "jobset.sigs.k8s.io/restart-attempt":"-1"})"}) {
    const auto job = decode(labels);
    ASSERT_TRUE(job);
    EXPECT_FALSE(job->place) << labels;
  }
}

}  // namespace
}  // namespace grapnel::jobset
