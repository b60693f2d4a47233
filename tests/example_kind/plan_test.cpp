#include "tests/example_kind/plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

namespace example {
namespace {

using namespace grapnel;

struct Row {
  std::string name;
  int32_t copies = 1;
  std::vector<std::string> cards;  // that there are
  std::string plan;
  int32_t counted = 0;  // in the status so far
};

class Greetings : public testing::TestWithParam<Row> {};

TEST_P(Greetings, ArePlanned) {
  const Row& row = GetParam();
  Greeting greeting{.meta = {.key = {Interned("ns"), "hi"}, .uid = kube::Uid("u")},
                    .spec = {.text = "hello", .copies = row.copies},
                    .status = {.cards = row.counted}};
  std::vector<Card> cards;
  for (const auto& name : row.cards) {
    cards.push_back({.meta = {.key = {Interned("ns"), name}, .uid = kube::Uid("c")}});
  }
  Observed observed{greeting};
  for (const Card& card : cards) observed.cards.push_back(&card);
  EXPECT_EQ(describe(plan(observed, Time{})), row.plan);
}

INSTANTIATE_TEST_SUITE_P(
    Rows, Greetings,
    testing::Values(
        Row{"creates what is missing", 2, {"hi-0"}, "create ConfigMap ns/hi-1\n", 1},
        Row{"takes away what is too much", 1, {"hi-0", "hi-1"}, "delete ConfigMap ns/hi-1\n", 2},
        Row{"does nothing when all is well", 1, {"hi-0"}, "", 1},
        Row{"counts what there is",
            1,
            {"hi-0"},
            "patch Greeting ns/hi (status) {\"status\":{\"cards\":1}}\n"}),
    [](const auto& row) {
      std::string name = row.param.name;
      std::ranges::replace(name, ' ', '_');
      return name;
    });

}  // namespace
}  // namespace example
