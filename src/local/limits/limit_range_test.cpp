#include "local/limits/limit_range.h"

#include <gtest/gtest.h>

namespace grapnel::local {
namespace {

Json range_of(std::string_view item) {
  return JsonObject{{"spec", JsonObject{{"limits", JsonArray{*parse_json(item)}}}}};
}

Json pod_of(std::string_view resources) {
  return JsonObject{
      {"spec",
       JsonObject{{"containers",
                   JsonArray{JsonObject{{"name", "c"}, {"resources", *parse_json(resources)}}}}}}};
}

TEST(LimitRange, FillsInWhatContainersDoNotSay) {
  Json pod = pod_of(R"({"limits":{"cpu":"1"}})");
  set_limit_defaults(pod, range_of(R"({"type":"Container","default":{"cpu":"2","memory":"1Gi"},)"
                                   R"("defaultRequest":{"cpu":"100m"}})"));
  EXPECT_EQ(to_text(at(pod, "spec", "containers")->as_array()[0]),
            R"({"name":"c","resources":{"limits":{"cpu":"1","memory":"1Gi"},)"
            R"("requests":{"cpu":"100m"}}})");
  EXPECT_EQ(string_or(at(pod, "metadata", "annotations", "kubernetes.io/limit-ranger")),
            "LimitRanger plugin set: cpu request for container c; memory limit for "
            "container c");
}

struct Case {
  std::string name;
  std::string item;
  std::string resources;
  std::string violation;
};

class LimitViolation : public testing::TestWithParam<Case> {};

TEST_P(LimitViolation, Is) {
  const auto found =
      limit_violations(pod_of(GetParam().resources), "pods", range_of(GetParam().item));
  EXPECT_EQ(found.empty() ? "" : found.front(), GetParam().violation);
}

INSTANTIATE_TEST_SUITE_P(
    Table, LimitViolation,
    testing::Values(
        Case{"Fine", R"({"type":"Container","min":{"cpu":"1"},"max":{"cpu":"2"}})",
             R"({"requests":{"cpu":"1"},"limits":{"cpu":"2"}})", ""},
        Case{"TooLittle", R"({"type":"Container","min":{"cpu":"1"}})",
             R"({"requests":{"cpu":"500m"}})",
             "minimum cpu usage per Container is 1, but request is 500m"},
        Case{"NoRequest", R"({"type":"Pod","min":{"cpu":"1"}})", "{}",
             "minimum cpu usage per Pod is 1.  No request is specified"},
        Case{"TooMuch", R"({"type":"Container","max":{"memory":"1Gi"}})",
             R"({"limits":{"memory":"2Gi"}})",
             "maximum memory usage per Container is 1Gi, but limit is 2Gi"},
        Case{"NoLimit", R"({"type":"Pod","max":{"cpu":"1"}})", "{}",
             "maximum cpu usage per Pod is 1.  No limit is specified"},
        Case{"Ratio", R"({"type":"Container","maxLimitRequestRatio":{"cpu":"2"}})",
             R"({"requests":{"cpu":"1"},"limits":{"cpu":"3"}})",
             "cpu max limit to request ratio per Container is 2, but provided ratio is 3.000000"}),
    [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace grapnel::local
