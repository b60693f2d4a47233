#include "local/builtin/garbage/plan.h"

#include <gtest/gtest.h>

namespace grapnel::local {
namespace {

struct Case {
  std::string name;
  std::vector<OwnerState> owners;
  std::vector<std::string_view> finalizers;
  bool deleting = false;
  bool has_dependent = false;
  bool blocks = true;
  std::string answer;
  bool look_again = false;
};

class GarbagePlan : public testing::TestWithParam<Case> {};

TEST_P(GarbagePlan, Answers) {
  const Case& c = GetParam();
  AnyObject object;
  kube::Meta& meta = object.meta;
  meta.key = {Interned("ns"), "thing"};
  meta.uid = kube::Uid("u-thing");
  meta.resource_version = 5;
  for (size_t i = 0; i < c.owners.size(); ++i) {
    meta.owners.push_back({.api_version = Interned("v1"),
                           .kind = Interned("Owner"),
                           .name = fmt::format("o{}", i),
                           .uid = kube::Uid(fmt::format("u{}", i))});
  }
  for (const auto finalizer : c.finalizers) meta.finalizers.emplace_back(finalizer);
  if (c.deleting) meta.deleted = Time{};
  AnyObject child;
  child.meta.key = {Interned("ns"), "child"};
  child.meta.owners.push_back({.name = "thing", .uid = meta.uid});
  if (c.blocks) child.blocks.push_back(meta.uid);
  GarbageObserved observed{.kind = &kube::kinds::kConfigMap, .object = object, .owners = c.owners};
  if (c.has_dependent) observed.dependents.push_back({&kube::kinds::kPod, &child});

  const auto p = plan(observed);

  std::string answer = runtime::describe(p);
  for (const auto& stage : p.stages) {
    for (const auto& write : stage) {
      if (const auto* erase = std::get_if<runtime::Delete>(&write)) {
        answer += erase->propagation == runtime::Delete::Propagation::kForeground ? "foreground"
                                                                                  : "background";
      }
    }
  }
  EXPECT_EQ(answer, c.answer);
  EXPECT_EQ(p.look_again.has_value(), c.look_again);
}

using enum OwnerState;

INSTANTIATE_TEST_SUITE_P(
    Table, GarbagePlan,
    testing::Values(
        Case{.name = "LeavesWhatHasNoOwner", .answer = ""},
        Case{.name = "LeavesWhatIsOwned", .owners = {kPresent}, .answer = ""},
        Case{.name = "GoesWithItsOwner",
             .owners = {kAbsent},
             .answer = "delete ConfigMap ns/thing\nbackground"},
        Case{.name = "GoesOnlyWithTheLastOwner",
             .owners = {kAbsent, kPresent},
             .answer =
                 "patch ConfigMap ns/thing {\"metadata\":{\"ownerReferences\":[{\"apiVersion\":"
                 "\"v1\",\"kind\":\"Owner\",\"name\":\"o1\",\"uid\":\"u1\"}]}}\n"},
        Case{.name = "WaitsWhenItCannotKnow",
             .owners = {kUnknown},
             .answer = "",
             .look_again = true},
        Case{.name = "GoesFirstWhenItsOwnerWaits",
             .owners = {kWaiting},
             .answer = "delete ConfigMap ns/thing\nforeground"},
        Case{.name = "StaysForAnotherOwnerThoughOneWaits",
             .owners = {kWaiting, kPresent},
             .answer =
                 "patch ConfigMap ns/thing {\"metadata\":{\"ownerReferences\":[{\"apiVersion\":"
                 "\"v1\",\"kind\":\"Owner\",\"name\":\"o1\",\"uid\":\"u1\"}]}}\n"},
        Case{.name = "ForegroundDeletesWhatItOwns",
             .finalizers = {"foregroundDeletion"},
             .deleting = true,
             .has_dependent = true,
             .answer = "delete Pod ns/child\nforeground"},
        Case{.name = "ForegroundDoesNotWaitForWhatDoesNotBlock",
             .finalizers = {"foregroundDeletion"},
             .deleting = true,
             .has_dependent = true,
             .blocks = false,
             .answer = "delete Pod ns/child\n"
                       "patch ConfigMap ns/thing {\"metadata\":{\"finalizers\":[]}}\n"
                       "foreground"},
        Case{.name = "ForegroundEndsWhenNothingIsLeft",
             .finalizers = {"other/finalizer", "foregroundDeletion"},
             .deleting = true,
             .answer = "patch ConfigMap ns/thing "
                       "{\"metadata\":{\"finalizers\":[\"other/finalizer\"]}}\n"},
        Case{.name = "OrphanSetsFree",
             .finalizers = {"orphan"},
             .deleting = true,
             .has_dependent = true,
             .answer = "patch Pod ns/child {\"metadata\":{\"ownerReferences\":[]}}\n"},
        Case{.name = "OrphanEndsWhenAllAreFree",
             .finalizers = {"orphan"},
             .deleting = true,
             .answer = "patch ConfigMap ns/thing {\"metadata\":{\"finalizers\":[]}}\n"},
        Case{.name = "BackgroundDeletionWaitsForOthersFinalizers",
             .finalizers = {"other/finalizer"},
             .deleting = true,
             .has_dependent = true,
             .answer = ""}),
    [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace grapnel::local
