#include "operators/jobset/validate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "operators/jobset/defaults.h"
#include "operators/jobset/job_builder.h"
#include "operators/jobset/world_test.h"

namespace grapnel::jobset {
namespace {

using namespace testing;
using ::testing::HasSubstr;

struct Row {
  std::string_view name;
  std::string spec;
  std::string_view field;  // "": it is valid
  std::string_view message;
};

void PrintTo(const Row& row, std::ostream* out) {
  *out << row.name;
}

std::string title(const ::testing::TestParamInfo<Row>& info) {
  std::string text;
  for (const char c : info.param.name) text += std::isalnum(c) ? c : '_';
  return text;
}

class Validate : public ::testing::TestWithParam<Row> {};

std::string all_of(const std::vector<Cause>& causes) {
  std::string text;
  for (const auto& cause : causes) text += cause.field + ": " + cause.message + "\n";
  return text;
}

TEST_P(Validate, Finds) {
  const Row& row = GetParam();
  const auto causes = validate(make_jobset(row.spec));
  if (row.field.empty()) {
    EXPECT_TRUE(causes.empty()) << all_of(causes);
    return;
  }
  ASSERT_EQ(causes.size(), 1U) << all_of(causes);
  EXPECT_EQ(causes[0].field, row.field);
  EXPECT_THAT(causes[0].message, HasSubstr(row.message));
}

std::string with(std::string_view more, std::string_view jobs = "") {
  return fmt::format(R"({{"replicatedJobs":[{}]{}}})",
                     jobs.empty() ? replicated("w", 2, "", R"("completions":3,)") : jobs, more);
}

std::string with_rule(std::string_view rule) {
  return with(fmt::format(R"(,"failurePolicy":{{"rules":[{}]}})", rule));
}

std::string claims(std::string_view names, std::string_view volumes = "") {
  return fmt::format(R"({{"volumeClaimPolicies":[{{"templates":[{}]}}],"replicatedJobs":[
      {{"name":"w","template":{{"spec":{{"template":{{"spec":{{{}"containers":[{{"name":"c",
        "volumeMounts":[{{"name":"data","mountPath":"/d"}}]}}]}}}}}}}}}}]}})",
                     names, volumes);
}

const std::string k50 = std::string(50, 'x');

INSTANTIATE_TEST_SUITE_P(
    Rows, Validate,
    ::testing::ValuesIn(std::vector<Row>{
        {"a plain one is valid", with(""), "", ""},
        {"an empty one is valid", R"({"replicatedJobs":[]})", "", ""},
        {"a subdomain in capitals", with(R"(,"network":{"subdomain":"1net"})"),
         "spec.network.subdomain", "DNS-1035"},
        {"a subdomain that is too long",
         with(fmt::format(R"(,"network":{{"subdomain":"{}"}})", std::string(64, 'a'))),
         "spec.network.subdomain", ".spec.network.subdomain is too long"},
        {"a manager without a domain", with(R"(,"managedBy":"kueue")"), "spec.managedBy",
         "must be a domain-prefixed path (such as \"acme.io/foo\")"},
        {"a manager with a domain", with(R"(,"managedBy":"acme.io/foo")"), "", ""},
        {"a manager that is too long",
         with(fmt::format(R"(,"managedBy":"acme.io/{}")", std::string(64, 'a'))), "spec.managedBy",
         "63"},
        {"a group name in capitals", with("", replicated("w", 1, R"(,"groupName":"Big")")),
         "spec.replicatedJobs[0].groupName", "DNS-1035"},
        {"a name whose Jobs are too long", with("", replicated(k50 + "yyyyyyyy", 1)),
         "spec.replicatedJobs[0].name",
         "JobSet name is too long, job names generated for this JobSet will exceed 63 characters"},
        {"a name whose pods are too long", with("", replicated(k50, 1, "", R"("completions":1,)")),
         "spec.replicatedJobs[0].name",
         "JobSet name is too long, pod names generated for this JobSet will exceed 63 characters"},
        {"a name that is no label", with("", replicated("W", 1)), "spec.replicatedJobs[0].name",
         "DNS-1035"},
        {"a name twice", with("", replicated("w", 1) + "," + replicated("w", 1)),
         "spec.replicatedJobs[1].name", "Duplicate value"},
        {"too many pods", with("", replicated("w", 100000, "", R"("parallelism":100000,)")),
         "spec.replicatedJobs[0].replicas",
         "the product of replicas and parallelism must not exceed 2147483647"},
        {"no containers",
         R"({"replicatedJobs":[{"name":"w","template":{"spec":{"template":{"spec":{}}}}}]})",
         "spec.replicatedJobs[0].template.spec.template.spec.containers", "Required value"},
        {"no pod template", R"({"replicatedJobs":[{"name":"w","template":{"spec":{}}}]})",
         "spec.replicatedJobs[0].template.spec.template.spec", "Required value"},
        {"parallelism as text", with("", replicated("w", 1, "", R"("parallelism":"two",)")),
         "spec.replicatedJobs[0].template.spec.parallelism", "must be an integer"},
        {"the first depends on something",
         with("", replicated("a", 1, R"(,"dependsOn":[{"name":"a","status":"Ready"}])")),
         "spec.replicatedJobs[0].dependsOn", "can't be set for the first ReplicatedJob"},
        {"a dependency on a later one",
         with("", replicated("a", 1) + "," +
                      replicated("b", 1, R"(,"dependsOn":[{"name":"c","status":"Ready"}])") + "," +
                      replicated("c", 1)),
         "spec.replicatedJobs[1].dependsOn[0].name",
         "replicatedJob: b cannot depend on replicatedJob: c"},
        {"a dependency on an earlier one",
         with("", replicated("a", 1) + "," +
                      replicated("b", 1, R"(,"dependsOn":[{"name":"a","status":"Complete"}])")),
         "", ""},
        {"a dependency and an order",
         with(R"(,"startupPolicy":{"startupPolicyOrder":"InOrder"})",
              replicated("a", 1) + "," +
                  replicated("b", 1, R"(,"dependsOn":[{"name":"a","status":"Complete"}])")),
         "spec", "StartupPolicy and DependsOn APIs are mutually exclusive"},
        {"success of nobody",
         with(R"(,"successPolicy":{"operator":"All","targetReplicatedJobs":["x"]})"),
         "spec.successPolicy.targetReplicatedJobs[0]",
         "invalid replicatedJob name 'x' does not appear in .spec.ReplicatedJobs"},
        {"a rule about nobody",
         with_rule(R"({"action":"FailJobSet","targetReplicatedJobs":["x"]})"),
         "spec.failurePolicy.rules[0].targetReplicatedJobs[0]", "invalid replicatedJob name 'x'"},
        {"a rule with a wrong name", with_rule(R"({"name":"a-b","action":"FailJobSet"})"),
         "spec.failurePolicy.rules[0].name", "must start with an alphabetic character"},
        {"a rule with a long name",
         with_rule(fmt::format(R"({{"name":"{}","action":"FailJobSet"}})", std::string(129, 'a'))),
         "spec.failurePolicy.rules[0].name", "of length 129"},
        {"rules of one name",
         with_rule(R"({"name":"a","action":"FailJobSet"},{"name":"a","action":"FailJobSet"})"),
         "spec.failurePolicy.rules[1].name", "Duplicate value"},
        {"a rule for an unknown reason",
         with_rule(R"({"action":"FailJobSet","onJobFailureReasons":["Boredom"]})"),
         "spec.failurePolicy.rules[0].onJobFailureReasons[0]", "supported values"},
        {"a rule with a broken pattern",
         with_rule(R"({"action":"FailJobSet","onJobFailureMessagePatterns":["a","("]})"),
         "spec.failurePolicy.rules[0].onJobFailureMessagePatterns[1]", "Invalid value"},
        {"a restart of single Jobs among too many",
         with(R"(,"failurePolicy":{"rules":[{"action":"RestartJob"}]})", replicated("w", 1025)),
         "spec.replicatedJobs[0].replicas", "replicas > 1024"},
        {"a restart in place", with(R"(,"failurePolicy":{"restartStrategy":"InPlaceRestart"})"),
         "spec.failurePolicy.restartStrategy", "InPlaceRestart is not supported"},
        {"a coordinator", with(R"(,"coordinator":{"replicatedJob":"w","jobIndex":1,"podIndex":2})"),
         "", ""},
        {"a coordinator that is nobody", with(R"(,"coordinator":{"replicatedJob":"x"})"),
         "spec.coordinator.replicatedJob", "coordinator replicatedJob x does not exist"},
        {"a coordinator in no Job", with(R"(,"coordinator":{"replicatedJob":"w","jobIndex":2})"),
         "spec.coordinator.jobIndex", "coordinator job index 2 is invalid for replicatedJob w"},
        {"a coordinator in no pod", with(R"(,"coordinator":{"replicatedJob":"w","podIndex":3})"),
         "spec.coordinator.podIndex",
         "coordinator pod index 3 is invalid for replicatedJob w job index 0"},
        {"a coordinator without indices", with(R"(,"coordinator":{"replicatedJob":"w"})"), "", ""},
        {"a coordinator without completions",
         with(R"(,"coordinator":{"replicatedJob":"w"})", replicated("w", 1)),
         "spec.coordinator.replicatedJob", "must be indexed completion mode"},
        {"a coordinator with a long address",
         with(
             fmt::format(R"(,"network":{{"subdomain":"{}"}},"coordinator":{{"replicatedJob":"w"}})",
                         std::string(60, 'a'))),
         "spec.coordinator", "spec will lead to invalid label value"},
        {"a claim", claims(R"({"metadata":{"name":"data"}})"), "", ""},
        {"a claim of no use", claims(R"({"metadata":{"name":"other"}})"), "spec.replicatedJobs",
         "don't have a matching volumeMount: other"},
        {"a claim twice", claims(R"({"metadata":{"name":"data"}},{"metadata":{"name":"data"}})"),
         "spec.volumeClaimPolicies[0].templates[1].metadata.name", "names must be unique"},
        {"a claim in a namespace", claims(R"({"metadata":{"name":"data","namespace":"x"}})"),
         "spec.volumeClaimPolicies[0].templates[0].metadata.namespace", "namespace cannot be set"},
        {"a claim beside a volume",
         claims(R"({"metadata":{"name":"data"}})", R"("volumes":[{"name":"data"}],)"),
         "spec.replicatedJobs[0].template.spec.template.spec.volumes",
         "volume name conflicts with VolumeClaimPolicy template name: data"},
    }),
    title);

struct Update {
  std::string_view name;
  std::string before;
  std::string after;
  std::string_view field;
  std::string_view message;
};

void PrintTo(const Update& row, std::ostream* out) {
  *out << row.name;
}

class ValidateUpdate : public ::testing::TestWithParam<Update> {};

TEST_P(ValidateUpdate, Finds) {
  const Update& row = GetParam();
  const auto before = defaulted(make_jobset(row.before));
  const auto after = defaulted(make_jobset(row.after));
  const auto causes = validate_update(before, after);
  if (row.field.empty()) {
    EXPECT_TRUE(causes.empty()) << all_of(causes);
    return;
  }
  ASSERT_EQ(causes.size(), 1U) << all_of(causes);
  EXPECT_EQ(causes[0].field, row.field);
  EXPECT_THAT(causes[0].message, HasSubstr(row.message));
}

std::string one(std::string_view job_spec, std::string_view pod = "", std::string_view more = "") {
  return fmt::format(R"({{"replicatedJobs":[{{"name":"w","template":{{"spec":{{{}"template":{{{}
      "spec":{{"containers":[{{"name":"c"}}]}}}}}}}}}}]{}}})",
                     job_spec, pod, more);
}

const std::string kSuspend = R"(,"suspend":true)";
const std::string kLabels = R"("metadata":{"labels":{"a":"b"}},)";

INSTANTIATE_TEST_SUITE_P(
    Rows, ValidateUpdate,
    ::testing::ValuesIn(std::vector<Update>{
        {"nothing changes", one(""), one(""), "", ""},
        {"suspension may change", one(""), one("", "", kSuspend), "", ""},
        {"time to live and coordinator may change", one(""),
         one("", "", R"(,"ttlSecondsAfterFinished":5,"coordinator":{"replicatedJob":"w"})"), "",
         ""},
        {"a template may not", one(""), one(R"("backoffLimit":1,)"), "spec.replicatedJobs[0]",
         "field is immutable"},
        {"nor the number of replicas", with("", replicated("w", 1)), with("", replicated("w", 2)),
         "spec.replicatedJobs[0]", "field is immutable"},
        {"nor the list", with("", replicated("w", 1)),
         with("", replicated("w", 1) + "," + replicated("x", 1)), "spec.replicatedJobs",
         "field is immutable"},
        {"pod labels may not while it runs", one(""), one("", kLabels), "spec.replicatedJobs[0]",
         "field is immutable"},
        {"pod labels may while it is suspended", one("", "", kSuspend), one("", kLabels, kSuspend),
         "", ""},
        {"and with the resumption", one("", "", kSuspend), one("", kLabels), "", ""},
        {"and with the suspension", one(""), one("", kLabels, kSuspend), "", ""},
        {"the number of pods may", one(R"("parallelism":2,"completions":2,)"),
         one(R"("parallelism":3,"completions":3,)"), "", ""},
        {"not to different numbers", one(R"("parallelism":2,"completions":2,)"),
         one(R"("parallelism":3,"completions":2,)"),
         "spec.replicatedJobs[0].template.spec.completions",
         "completions must be equal to parallelism for Elastic Indexed Jobs"},
        {"not of Jobs without an index",
         one(R"("completionMode":"NonIndexed","parallelism":2,"completions":2,)"),
         one(R"("completionMode":"NonIndexed","parallelism":3,"completions":3,)"),
         "spec.replicatedJobs[0]", "field is immutable"},
        {"the manager may not", one(""), one("", "", R"(,"managedBy":"a.b/c")"), "spec.managedBy",
         "field is immutable"},
        {"the network may not", one(""), one("", "", R"(,"network":{"subdomain":"x"})"),
         "spec.network", "Value is immutable"},
        {"the failure policy may not", one(""), one("", "", R"(,"failurePolicy":{})"),
         "spec.failurePolicy", "Value is immutable"},
        {"the success policy may not", one(""),
         one("", "", R"(,"successPolicy":{"operator":"Any"})"), "spec.successPolicy",
         "Value is immutable"},
        {"the order may not", one(""),
         one("", "", R"(,"startupPolicy":{"startupPolicyOrder":"InOrder"})"), "spec.startupPolicy",
         "Value is immutable"},
        {"claims may not", one(""), one("", "", R"(,"volumeClaimPolicies":[{"templates":[]}])"),
         "spec.volumeClaimPolicies", "Value is immutable"},
    }),
    [](const ::testing::TestParamInfo<Update>& info) {
      std::string text;
      for (const char c : info.param.name) text += std::isalnum(c) ? c : '_';
      return text;
    });

TEST(ValidateUpdate, TheNumberOfPodsOfAFinishedOneMayNot) {
  auto before = make_jobset(one(R"("parallelism":2,"completions":2,)"));
  const auto after = make_jobset(one(R"("parallelism":3,"completions":3,)"));
  before.status.conditions.push_back({.type = "Failed", .status = api::ConditionStatus::True});
  const auto causes = validate_update(before, after);
  ASSERT_EQ(causes.size(), 1U);
  EXPECT_EQ(causes[0].field, "spec.replicatedJobs[0].template.spec");
}

TEST(Defaults, OfTheObjectAsSent) {
  const Json object = defaulted_object(json(R"({"kind":"JobSet","spec":{
      "replicatedJobs":[{"name":"w","template":{"spec":{"template":{"spec":{"x":1}}}}}],
      "failurePolicy":{"rules":[{"action":"FailJobSet"},{"name":"n","action":"FailJobSet"}]},
      "volumeClaimPolicies":[{"templates":[]}],"unknown":1}})"));
  EXPECT_TRUE(equal(object, json(R"({"kind":"JobSet","spec":{
      "replicatedJobs":[{"name":"w","groupName":"default","replicas":1,"template":{"spec":{
        "completionMode":"Indexed","template":{"spec":{"x":1,"restartPolicy":"OnFailure"}}}}}],
      "failurePolicy":{"restartStrategy":"Recreate","rules":[
        {"name":"failurePolicyRule0","action":"FailJobSet"},{"name":"n","action":"FailJobSet"}]},
      "successPolicy":{"operator":"All"},"startupPolicy":{"startupPolicyOrder":"AnyOrder"},
      "network":{"enableDNSHostnames":true,"publishNotReadyAddresses":true},
      "volumeClaimPolicies":[{"templates":[],"retentionPolicy":{"whenDeleted":"Delete"}}],
      "unknown":1}})")))
      << to_pretty_text(object);
}

// Where no webhook filled anything in, the planner finds the same faults.
TEST(Defaults, ACoordinatorIsJudgedTheSameWithoutThem) {
  for (const std::string_view coordinator :
       {R"({"replicatedJob":"w"})", R"({"replicatedJob":"w","jobIndex":null,"podIndex":null})",
        R"({"replicatedJob":"w","podIndex":1})", R"({"replicatedJob":"w","jobIndex":1})",
        R"({"replicatedJob":"w","podIndex":5})", R"({"replicatedJob":"x"})"}) {
    for (const std::string_view job :
         {"", R"("completions":3,)", R"("completions":3,"completionMode":null,)",
          R"("completions":3,"completionMode":"",)", R"("completions":null,)",
          R"("completions":3,"completionMode":"NonIndexed",)", R"("parallelism":3,)"}) {
      for (const std::string_view replicas : {"", R"("replicas":null,)", R"("replicas":2,)"}) {
        const Json object = jobset_object(fmt::format(
            R"({{"coordinator":{},"replicatedJobs":[{{"name":"w",{}"template":{{"spec":{{{}
            "template":{{"spec":{{"containers":[{{"name":"c"}}]}}}}}}}}}}]}})",
            coordinator, replicas, job));
        const auto bare = api::decode_jobset(object);
        const auto filled = api::decode_jobset(defaulted_object(object));
        ASSERT_TRUE(bare && filled) << to_text(object);
        EXPECT_EQ(all_of(validate(*bare)), all_of(validate(*filled))) << to_text(object);
        EXPECT_EQ(JobBuilder(*bare, bare->spec.replicated_jobs[0]).build(0),
                  JobBuilder(*filled, filled->spec.replicated_jobs[0]).build(0))
            << to_text(object);
      }
    }
  }
}

TEST(Defaults, WithstandAnyShape) {
  for (const auto* text : {"null", "1", "{}", R"({"spec":[]})", R"({"spec":{"replicatedJobs":{}}})",
                           R"({"spec":{"replicatedJobs":[1,{"template":2}],"network":3}})",
                           R"({"spec":{"failurePolicy":{"rules":[1]},"volumeClaimPolicies":1}})"}) {
    defaulted_object(json(text));
  }
}

}  // namespace
}  // namespace grapnel::jobset
