#include "local/limits/quota.h"

#include <gtest/gtest.h>

namespace grapnel::local {
namespace {

Json pod(std::string_view resources, std::string_view more = "{}") {
  Json object = *parse_json(fmt::format(
      R"({{"metadata":{{"name":"p"}},"spec":{{"containers":[{{"name":"c","resources":{}}}]}}}})",
      resources));
  const Json extra = *parse_json(more);
  for (const auto& [key, value] : extra.as_object()) object.as_object()[key] = value;
  return object;
}

struct Case {
  std::string name;
  std::string hard;
  std::string used;
  std::string resources = "{}";
  std::string why;  // "": it fits
  std::string scopes = "[]";
  std::string more = "{}";
};

class QuotaAnswer : public testing::TestWithParam<Case> {};

TEST_P(QuotaAnswer, Is) {
  const Case& c = GetParam();
  const auto quota = Quota::from_json(*parse_json(fmt::format(
      R"({{"metadata":{{"name":"q"}},"spec":{{"hard":{},"scopes":{}}}}})", c.hard, c.scopes)));
  const auto used =
      Quota::from_json(*parse_json(fmt::format(R"({{"spec":{{"hard":{}}}}})", c.used)));
  EXPECT_EQ(why_beyond(quota, used.hard, pod(c.resources, c.more), "", "pods").value_or(""), c.why);
}

INSTANTIATE_TEST_SUITE_P(
    Table, QuotaAnswer,
    testing::Values(
        Case{"Fits", R"({"pods":"2"})", R"({"pods":"1"})"},
        Case{"TooMany", R"({"pods":"1"})", R"({"pods":"1"})", "{}",
             "exceeded quota: q, requested: pods=1, used: pods=1, limited: pods=1"},
        Case{"Counted", R"({"count/pods":1})", R"({"count/pods":1})", "{}",
             "exceeded quota: q, requested: count/pods=1, used: count/pods=1, limited: "
             "count/pods=1"},
        Case{"TooMuch", R"({"requests.cpu":"1","limits.memory":"1Gi"})",
             R"({"requests.cpu":"600m","limits.memory":"0"})",
             R"({"requests":{"cpu":"500m"},"limits":{"memory":"2Gi"}})",
             "exceeded quota: q, requested: limits.memory=2Gi,requests.cpu=500m, used: "
             "limits.memory=0,requests.cpu=600m, limited: limits.memory=1Gi,requests.cpu=1"},
        Case{"NotSaid", R"({"cpu":"1","limits.memory":"1Gi"})", "{}", "{}",
             "failed quota: q: must specify cpu for: c; limits.memory for: c"},
        Case{"OutOfItsScope", R"({"pods":"0"})", "{}", R"({"requests":{"cpu":"1"}})", "",
             R"(["BestEffort"])"},
        Case{"InItsScope", R"({"pods":"0"})", "{}", "{}",
             "exceeded quota: q, requested: pods=1, used: pods=0, limited: pods=0",
             R"(["BestEffort","NotTerminating"])"},
        Case{"AnEndedPodUsesNothing", R"({"pods":"0"})", "{}", "{}", "", "[]",
             R"({"status":{"phase":"Failed"}})"}),
    [](const auto& info) { return info.param.name; });

TEST(Usage, OfOtherKinds) {
  const auto names = [](const Usage& usage) {
    std::string text;
    for (const auto& [name, amount] : usage) text += fmt::format("{}={} ", name, amount.text());
    return text;
  };
  EXPECT_EQ(names(usage_of(JsonObject(), "batch", "jobs")), "count/jobs.batch=1 ");
  EXPECT_EQ(names(usage_of(*parse_json(R"({"spec":{"resources":{"requests":{"storage":"1Gi"}}}})"),
                           "", "persistentvolumeclaims")),
            "count/persistentvolumeclaims=1 persistentvolumeclaims=1 requests.storage=1Gi ");
  EXPECT_EQ(names(usage_of(*parse_json(R"({"spec":{"type":"NodePort","ports":[{},{}]}})"), "",
                           "services")),
            "count/services=1 services=1 services.nodeports=2 ");
}

TEST(Usage, InitContainersCountWhereTheyAreLarger) {
  const auto spec = parse_json(R"({
    "initContainers":[{"resources":{"requests":{"cpu":"3"}}},
                      {"restartPolicy":"Always","resources":{"requests":{"cpu":"1"}}},
                      {"resources":{"requests":{"cpu":"1","memory":"5"}}}],
    "containers":[{"resources":{"requests":{"cpu":"1"}}},{"resources":{"requests":{"cpu":"500m"}}}]
  })");
  const Usage usage = pod_resources(*spec, "requests");
  EXPECT_EQ(usage.at("cpu").text(), "3");
  EXPECT_EQ(usage.at("memory").text(), "5");
}

}  // namespace
}  // namespace grapnel::local
