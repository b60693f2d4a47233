#include "api/experiment.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "runtime/cache.h"

namespace grapnel::api {
namespace {

Json experiment(int number, int version, JsonObject annotations) {
  return JsonObject{
      {"metadata", JsonObject{{"name", fmt::format("e-{}", number)},
                              {"namespace", fmt::format("team-{}", number % 100)},
                              {"uid", fmt::format("00000000-0000-4000-8000-{:012x}", number + 1)},
                              {"resourceVersion", std::to_string(version)},
                              {"annotations", std::move(annotations)},
                              {"labels", JsonObject{{"run", std::to_string(number)}}}}},
      {"spec",
       *parse_json(R"({"operator":"jax","command":"run","types":{"worker":{"count":1}}})")}};
}

Experiment decoded(const Json& object) {
  auto result = decode_resource<Experiment>(object);
  EXPECT_TRUE(result) << result.error().message;
  return result.value_or(Experiment());
}

TEST(CachedExperiments, KeepOnlyWhatPlannersRead) {
  const auto known = decoded(experiment(
      1, 1,
      {{"kubectl.kubernetes.io/last-applied-configuration", "{}"}, {"grapnel.dev/code", "c"}}));
  ASSERT_EQ(known.meta.annotations.size(), 1U);
  EXPECT_EQ(known.meta.annotations.get("grapnel.dev/code"), "c");
  EXPECT_TRUE(known.meta.labels.empty());
}

TEST(CachedExperiments, LeaveNothingBehindWhenTheyGo) {
  const size_t before = interned_count();
  runtime::Cache<Experiment> cache(kube::kinds::kExperiment);
  for (int i = 0; i < 10'000; ++i) {
    for (int version = 1; version <= 2; ++version) {
      cache.update(decoded(
          experiment(i, version,
                     {{"kubectl.kubernetes.io/last-applied-configuration", std::to_string(i)},
                      {"grapnel.dev/work-directory", fmt::format("/home/{}/{}", i, version)}})));
    }
    if (i >= 100)
      cache.remove({Interned(fmt::format("team-{}", i % 100)), fmt::format("e-{}", i - 100)});
  }
  EXPECT_EQ(cache.size(), 100U);
  EXPECT_LE(interned_count(), before + 210) << "a directory and a namespace for each that is there";
  for (const auto& left : cache.all()) cache.remove(left->meta.key);
  EXPECT_EQ(interned_count(), before);
}

}  // namespace
}  // namespace grapnel::api
