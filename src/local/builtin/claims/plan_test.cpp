#include "local/builtin/claims/plan.h"

#include <gtest/gtest.h>

#include <deque>

namespace grapnel::local {
namespace {

const std::string kUid = "6f4a1c9e-0000-4000-8000-000000000001";
const std::string kOwn = "pvc-" + kUid;

std::string claim(std::string_view spec = "", std::string_view status = R"({"phase":"Pending"})",
                  std::string_view metadata = "") {
  return fmt::format(R"({{"metadata":{{"name":"data","namespace":"ns","uid":"{}",
      "resourceVersion":"7","finalizers":["kubernetes.io/pvc-protection","other"]{}}},
      "spec":{{"accessModes":["ReadWriteOnce"],"resources":{{"requests":{{"storage":"1Gi"}}}}{}}},
      "status":{}}})",
                     kUid, metadata, spec, status);
}

const std::string kGoing = R"(,"deletionTimestamp":"2026-01-01T00:00:00Z")";
const std::string kBound =
    R"({"phase":"Bound","accessModes":["ReadWriteOnce"],"capacity":{"storage":"1Gi"}})";
const std::string kReference =
    fmt::format(R"(,"claimRef":{{"namespace":"ns","name":"data","uid":"{}"}})", kUid);
const std::string kOther = R"(,"claimRef":{"namespace":"ns","name":"data","uid":"another"})";

struct VolumeText {
  std::string name = kOwn;
  std::string more = "";
  std::string phase = "Bound";
  std::string storage = "1Gi";
  std::string metadata = "";
};

std::string volume(const VolumeText& v) {
  return fmt::format(R"({{"metadata":{{"name":"{0}","uid":"u-{0}","resourceVersion":"9",
      "finalizers":["kubernetes.io/pv-protection"]{4}}},
      "spec":{{"accessModes":["ReadWriteOnce"],"capacity":{{"storage":"{3}"}}{1}}},
      "status":{{"phase":"{2}"}}}})",
                     v.name, v.more, v.phase, v.storage, v.metadata);
}

// Each write and event in a line.
std::vector<std::string> lines_of(const runtime::Plan& plan) {
  std::vector<std::string> lines;
  for (const auto& stage : plan.stages) {
    for (const auto& write : stage) lines.push_back(runtime::describe(write));
  }
  if (plan.status) lines.push_back("status " + to_text(*find(plan.status->body, "status")));
  for (const auto& event : plan.events) lines.push_back(event.reason + ": " + event.message);
  return lines;
}

struct Case {
  std::string name;
  std::string claim;
  std::vector<std::string> volumes;
  std::vector<std::string> answer;
  bool in_use = false;
};

class ClaimPlan : public testing::TestWithParam<Case> {};

TEST_P(ClaimPlan, Answers) {
  const auto claim = decode_claim(*parse_json(GetParam().claim));
  ASSERT_TRUE(claim);
  std::deque<PersistentVolume> volumes;
  ClaimObserved observed{.claim = *claim, .in_use = GetParam().in_use, .directory = "/d"};
  for (const auto& text : GetParam().volumes) {
    volumes.push_back(decode_persistent_volume(*parse_json(text)).value());
    observed.volumes.push_back(&volumes.back());
  }
  EXPECT_EQ(lines_of(plan(observed)), GetParam().answer);
}

const std::string kNamed = fmt::format(R"(,"volumeName":"{}")", kOwn);
const std::string kBindPatch =
    R"({"metadata":{"annotations":{"pv.kubernetes.io/bind-completed":"yes",)"
    R"("pv.kubernetes.io/bound-by-controller":"yes"}},"spec":{"volumeName":")";

INSTANTIATE_TEST_SUITE_P(
    Table, ClaimPlan,
    testing::Values(
        Case{"GetsAVolumeOfOurs", claim(), {}, {"create PersistentVolume " + kOwn}},
        Case{"AlsoWithAClassThatOnlyTheClusterHas",
             claim(R"(,"storageClassName":"fast")"),
             {},
             {"create PersistentVolume " + kOwn}},
        Case{
            "IsBoundOnceItIsThere",
            claim(),
            {volume({.more = kReference, .phase = "Pending"})},
            {"patch PersistentVolume " + kOwn + R"( (status) {"status":{"phase":"Bound"}})",
             "patch PersistentVolumeClaim ns/data " + kBindPatch + kOwn + R"("}})",
             "status " + kBound, "ProvisioningSucceeded: Successfully provisioned volume " + kOwn}},
        Case{"StaysBound", claim(kNamed, kBound), {volume({.more = kReference})}, {}},
        Case{"TakesTheSmallestThatFits",
             claim(R"(,"storageClassName":"disk")"),
             {volume({.name = "big", .more = R"(,"storageClassName":"disk")", .storage = "9Gi"}),
              volume({.name = "fits", .more = R"(,"storageClassName":"disk")", .storage = "2Gi"}),
              volume({.name = "small", .more = R"(,"storageClassName":"disk")", .storage = "1Mi"}),
              volume({.name = "class", .more = R"(,"storageClassName":"no")"}),
              volume({.name = "taken", .more = R"(,"storageClassName":"disk")" + kOther})},
             {R"(patch PersistentVolume fits {"spec":{"claimRef":{"apiVersion":"v1",)"
              R"("kind":"PersistentVolumeClaim","namespace":"ns","name":"data","uid":")" +
                  kUid + R"("}}})",
              "patch PersistentVolumeClaim ns/data " + kBindPatch + R"(fits"}})",
              R"(status {"phase":"Bound","accessModes":["ReadWriteOnce"],)"
              R"("capacity":{"storage":"2Gi"}})"}},
        Case{"TakesTheOneKeptForIt",
             claim(),
             {volume({.name = "any"}),
              volume({.name = "kept", .more = R"(,"claimRef":{"namespace":"ns","name":"data"})"})},
             {R"(patch PersistentVolume kept {"spec":{"claimRef":{"apiVersion":"v1",)"
              R"("kind":"PersistentVolumeClaim","namespace":"ns","name":"data","uid":")" +
                  kUid + R"("}}})",
              "patch PersistentVolumeClaim ns/data " + kBindPatch + R"(kept"}})",
              "status " + kBound}},
        Case{"WaitsForTheOneItNames",
             claim(R"(,"volumeName":"v")"),
             {volume({.name = "any"})},
             {R"(FailedBinding: volume "v" not found)"}},
        Case{"DoesNotTakeWhatIsTaken",
             claim(R"(,"volumeName":"v")"),
             {volume({.name = "v", .more = kOther})},
             {R"(FailedBinding: volume "v" already bound to a different claim.)"}},
        Case{"IsLostWithItsVolume",
             claim(kNamed, kBound),
             {},
             {R"(status {"phase":"Lost","accessModes":null,"capacity":null})",
              "ClaimLost: Bound claim has lost its PersistentVolume. Data on the volume is lost!"}},
        Case{"StaysWhilePodsUseIt", claim(kNamed, kBound, kGoing), {volume({})}, {}, true},
        Case{"GoesWhenNobodyDoes",
             claim(kNamed, kBound, kGoing),
             {volume({})},
             {R"(patch PersistentVolumeClaim ns/data {"metadata":{"finalizers":["other"]}})"}}),
    [](const auto& info) { return info.param.name; });

TEST(ClaimPlan, MakesAVolumeOfWhatIsAskedFor) {
  const auto asked = decode_claim(*parse_json(claim(R"(,"storageClassName":"fast")")));
  const auto p = plan(ClaimObserved{.claim = *asked, .directory = "/d"});
  const Json made = std::get<runtime::Create>(p.stages.at(0).at(0)).object.make();
  EXPECT_EQ(string_or(at(made, "spec", "hostPath", "path")), "/d/" + kOwn);
  EXPECT_EQ(string_or(at(made, "spec", "capacity", "storage")), "1Gi");
  EXPECT_EQ(string_or(at(made, "spec", "storageClassName")), "fast");
  EXPECT_EQ(string_or(at(made, "spec", "claimRef", "uid")), kUid);
  EXPECT_EQ(string_or(at(made, "spec", "persistentVolumeReclaimPolicy")), "Delete");
}

struct VolumeCase {
  std::string name;
  std::string volume;
  bool has_claim = false;
  std::vector<std::string> answer;
};

class VolumePlan : public testing::TestWithParam<VolumeCase> {};

TEST_P(VolumePlan, Answers) {
  const auto volume = decode_persistent_volume(*parse_json(GetParam().volume));
  ASSERT_TRUE(volume);
  const auto p = plan(VolumeObserved{.volume = *volume, .has_claim = GetParam().has_claim});
  EXPECT_EQ(lines_of(p), GetParam().answer);
}

const std::string kOurs =
    R"(,"annotations":{"pv.kubernetes.io/provisioned-by":"grapnel.dev/directory"})";
const std::string kDelete = kReference + R"(,"persistentVolumeReclaimPolicy":"Delete")";
const std::string kRetain = kReference + R"(,"persistentVolumeReclaimPolicy":"Retain")";

INSTANTIATE_TEST_SUITE_P(
    Table, VolumePlan,
    testing::Values(
        VolumeCase{"IsAvailable",
                   volume({.name = "v", .phase = "Pending"}),
                   false,
                   {R"(patch PersistentVolume v (status) {"status":{"phase":"Available"}})"}},
        VolumeCase{"StaysWithItsClaim", volume({.more = kDelete, .metadata = kOurs}), true, {}},
        VolumeCase{"GoesWithItsClaim",
                   volume({.more = kDelete, .metadata = kOurs}),
                   false,
                   {"delete PersistentVolume " + kOwn}},
        VolumeCase{
            "IsKeptWhereThatIsAskedFor",
            volume({.more = kRetain, .metadata = kOurs}),
            false,
            {"patch PersistentVolume " + kOwn + R"( (status) {"status":{"phase":"Released"}})"}},
        VolumeCase{"IsKeptWhenSomebodyElseMadeIt",
                   volume({.name = "v", .more = kDelete, .phase = "Released"}),
                   false,
                   {}},
        VolumeCase{"WaitsForItsClaimToGo",
                   volume({.more = kDelete, .metadata = kOurs + kGoing}),
                   true,
                   {}},
        VolumeCase{"IsLetGo",
                   volume({.more = kDelete, .metadata = kOurs + kGoing}),
                   false,
                   {"patch PersistentVolume " + kOwn + R"( {"metadata":{"finalizers":[]}})"}}),
    [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace grapnel::local
