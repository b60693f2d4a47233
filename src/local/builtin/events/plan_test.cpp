#include "local/builtin/events/plan.h"

#include <gtest/gtest.h>

namespace grapnel::local {
namespace {

struct Case {
  std::string_view fields;
  bool goes = false;
  int64_t minutes_left = 0;
};

class EventExpiry : public testing::TestWithParam<Case> {};

TEST_P(EventExpiry, CountsFromWhenItWasLastSeen) {
  const Case& c = GetParam();
  Json object = *parse_json(c.fields);
  object.as_object()["metadata"] = *parse_json(R"({"name":"e","namespace":"ns","uid":"u",
      "creationTimestamp":"2026-01-01T10:30:00Z"})");
  const auto event = decode_old_event(object);
  ASSERT_TRUE(event);
  const auto p = plan(*event, *parse_time("2026-01-01T12:00:00Z"));
  EXPECT_EQ(runtime::describe(p), c.goes ? "delete Event ns/e\n" : "");
  EXPECT_EQ(p.look_again ? duration_cast<minutes>(*p.look_again).count() : 0, c.minutes_left);
}

INSTANTIATE_TEST_SUITE_P(
    Table, EventExpiry,
    testing::Values(
        Case{.fields = "{}", .goes = true},
        Case{.fields = R"({"lastTimestamp":"2026-01-01T11:00:00Z"})", .goes = true},
        Case{.fields = R"({"lastTimestamp":"2026-01-01T11:10:00Z"})", .minutes_left = 10},
        Case{.fields = R"({"eventTime":"2026-01-01T11:20:00.000000Z"})", .minutes_left = 20},
        Case{.fields = R"({"series":{"lastObservedTime":"2026-01-01T11:30:00.000000Z"}})",
             .minutes_left = 30}));

}  // namespace
}  // namespace grapnel::local
