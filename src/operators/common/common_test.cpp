#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "api/codec.h"
#include "api/jobset.h"
#include "operators/common/conditions.h"
#include "operators/common/object.h"
#include "operators/common/refusal.h"
#include "operators/common/ttl.h"

namespace grapnel::operators {
namespace {

using api::ConditionStatus;
using ::testing::ElementsAre;

const Time kNow = *parse_time("2026-03-01T12:00:00Z");

api::JobSet jobset() {
  api::JobSet jobset;
  jobset.meta.key = {Interned("ml"), "train"};
  jobset.meta.uid = kube::Uid("8c5b6d0e-0000-4000-8000-000000000001");
  return jobset;
}

std::vector<std::string> events_of(const runtime::Plan& plan) {
  std::vector<std::string> lines;
  for (const auto& event : plan.events) {
    lines.push_back(fmt::format("{} {} {}: {}", event.regarding.key.text(),
                                event.type == runtime::Event::Type::kNormal ? "Normal" : "Warning",
                                event.reason, event.message));
  }
  return lines;
}

TEST(Object, IsReferredToByItsKindAndUid) {
  const auto ref = ref_to(jobset());
  EXPECT_EQ(ref.kind->kind, "JobSet");
  EXPECT_EQ(ref.key.text(), "ml/train");
  EXPECT_EQ(ref.uid.text(), "8c5b6d0e-0000-4000-8000-000000000001");
}

TEST(Object, OwnsAsAController) {
  EXPECT_EQ(to_text(owned_by(jobset())),
            R"([{"apiVersion":"jobset.x-k8s.io/v1alpha2","kind":"JobSet","name":"train",)"
            R"("uid":"8c5b6d0e-0000-4000-8000-000000000001","controller":true,)"
            R"("blockOwnerDeletion":true}])");
}

std::vector<std::string> conditions_of(const ConditionDraft& draft) {
  std::vector<std::string> lines;
  for (const auto& c : draft.all()) {
    lines.push_back(fmt::format("{}={}/{}", c.type, api::name_of(c.status), c.reason));
  }
  return lines;
}

ConditionDraft draft_of(std::vector<api::Condition> conditions) {
  return {ref_to(jobset()), std::move(conditions), kNow, {{"Starting", "Started"}}};
}

TEST(ConditionDraft, AChangeHasAnEvent) {
  auto draft = draft_of({});
  draft.set_true("Failed", "Broken", "it broke", runtime::Event::Type::kWarning);
  draft.set_true("Failed", "Broken", "it broke", runtime::Event::Type::kWarning);
  draft.emit(runtime::Event::Type::kNormal, "By", "the way");
  EXPECT_THAT(conditions_of(draft), ElementsAre("Failed=True/Broken"));
  EXPECT_EQ(draft.all()[0].last_transition_time, kNow);
  runtime::Plan plan;
  std::move(draft).add_events_to(plan);
  EXPECT_THAT(events_of(plan),
              ElementsAre("ml/train Warning Broken: it broke", "ml/train Normal By: the way"));
}

TEST(ConditionDraft, WhatNeverHeldIsNotReportedAsFalse) {
  auto draft = draft_of({});
  draft.set_false("Suspended", "Resumed", "goes on");
  EXPECT_TRUE(draft.all().empty());
  draft.set_true("Suspended", "Held", "waits");
  draft.set_false("Suspended", "Resumed", "goes on");
  EXPECT_THAT(conditions_of(draft), ElementsAre("Suspended=False/Resumed"));
}

TEST(ConditionDraft, OneOfAPairEndsTheOther) {
  auto draft = draft_of({});
  draft.set_true("Starting", "A", "a");
  draft.set_true("Other", "O", "o");
  draft.set_true("Started", "B", "b");
  EXPECT_THAT(conditions_of(draft),
              ElementsAre("Starting=False/A", "Other=True/O", "Started=True/B"));
  draft.set_true("Starting", "A", "a");
  EXPECT_THAT(conditions_of(draft),
              ElementsAre("Starting=True/A", "Other=True/O", "Started=False/B"));
}

TEST(Expire, DeletesWhenItsTimeIsOver) {
  EXPECT_TRUE(expire(ref_to(jobset()), kNow, std::nullopt, kNow).empty());
  EXPECT_EQ(expire(ref_to(jobset()), kNow - seconds(10), 30, kNow).look_again, seconds(20));
  const auto plan = expire(ref_to(jobset()), kNow - seconds(30), 30, kNow,
                           runtime::Delete::Propagation::kForeground);
  EXPECT_FALSE(plan.look_again);
  const auto& erase = std::get<runtime::Delete>(plan.stages.at(0).at(0));
  EXPECT_EQ(erase.target, ref_to(jobset()));
  EXPECT_EQ(erase.propagation, runtime::Delete::Propagation::kForeground);
}

TEST(Refusal, IsToldWithWhatWasRefused) {
  const runtime::Refusal refusal{.what = "create Job ml/train-w-0",
                                 .error = {.reason = Reason::kForbidden, .message = "no quota"}};
  EXPECT_TRUE(is_creation_of(kube::kinds::kJob, refusal));
  EXPECT_FALSE(is_creation_of(kube::kinds::kJobSet, refusal));
  EXPECT_EQ(refused_name(refusal), "train-w-0");
  runtime::Plan plan;
  report_refusal(ref_to(jobset()), refusal, "FailedCreate", plan);
  EXPECT_THAT(events_of(plan),
              ElementsAre("ml/train Warning FailedCreate: create Job ml/train-w-0: no quota"));
}

}  // namespace
}  // namespace grapnel::operators
