#include "local/builtin/quota/plan.h"

#include <gtest/gtest.h>

namespace grapnel::local {
namespace {

std::string status_of(const QuotaObserved& observed) {
  const auto p = plan(observed);
  return p.status ? to_text(*find(p.status->body, "status")) : "";
}

TEST(QuotaPlan, SaysWhatIsUsed) {
  auto quota = decode_resource_quota(*parse_json(R"({"metadata":{"name":"q","namespace":"ns"},
      "spec":{"hard":{"pods":"5","requests.cpu":"2","configmaps":"3","count/jobs.batch":"1"}}})"));
  const auto pod = [](std::string_view phase) {
    return *decode_quota_pod(*parse_json(fmt::format(
        R"({{"metadata":{{"name":"p"}},"status":{{"phase":"{}"}},
            "spec":{{"containers":[{{"name":"c","resources":{{"requests":{{"cpu":"500m"}}}}}}]}}}})",
        phase)));
  };
  const QuotaPod running = pod("Running");
  const QuotaPod ended = pod("Succeeded");
  ASSERT_TRUE(quota);
  QuotaObserved observed{
      .quota = *quota,
      .pods = {&running, &running, &ended},
      .counted = {{"configmaps", Quantity::from_units(2)}, {"secrets", Quantity::from_units(9)}}};
  const std::string expected =
      R"({"hard":{"configmaps":"3","count/jobs.batch":"1","pods":"5","requests.cpu":"2"},)"
      R"("used":{"configmaps":"2","count/jobs.batch":"0","pods":"2","requests.cpu":"1"}})";
  EXPECT_EQ(status_of(observed), expected);
  quota->object.as_object()["status"] = *parse_json(expected);
  EXPECT_EQ(status_of(observed), "") << "nothing is new";
}

}  // namespace
}  // namespace grapnel::local
