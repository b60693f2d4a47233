#include "api/jobset.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace grapnel::api {
namespace {

Json json(std::string_view text) {
  return parse_json(text).value();
}

JobSet decode(std::string_view spec, std::string_view status = "{}") {
  const auto decoded = decode_jobset(json(
      fmt::format(R"({{"metadata":{{"name":"a","namespace":"n","labels":{{"l":"1"}},"annotations":
      {{"kubectl.kubernetes.io/last-applied-configuration":"large",
        "alpha.jobset.sigs.k8s.io/exclusive-topology":"rack"}}}},"spec":{},"status":{}}})",
                  spec, status)));
  EXPECT_TRUE(decoded) << (decoded ? "" : decoded.error().message);
  return decoded ? *decoded : JobSet();
}

TEST(JobSet, DefaultsAreThoseOfTheController) {
  const JobSet jobset = decode(R"({"replicatedJobs":[{"name":"w","template":{}}]})");
  EXPECT_TRUE(jobset.spec.network.enable_dns_hostnames);
  EXPECT_TRUE(jobset.spec.network.publish_not_ready_addresses);
  EXPECT_EQ(jobset.spec.success_policy.op, SuccessOperator::All);
  EXPECT_EQ(jobset.spec.startup_policy.order, StartupOrder::AnyOrder);
  EXPECT_FALSE(jobset.spec.failure_policy);
  EXPECT_EQ(jobset.spec.replicated_jobs[0].replicas, 1);
  EXPECT_EQ(jobset.spec.replicated_jobs[0].group_name, "default");
  EXPECT_FALSE(jobset.is_suspended());
}

TEST(JobSet, KeepsOnlyTheMetadataThatIsRead) {
  const JobSet jobset = decode("{}");
  EXPECT_EQ(jobset.meta.annotations.size(), 1U);
  EXPECT_EQ(jobset.meta.annotations.get("alpha.jobset.sigs.k8s.io/exclusive-topology"), "rack");
  EXPECT_TRUE(jobset.meta.labels.empty());
}

TEST(JobSet, EncodesWhatItDecodes) {
  const Json spec = json(R"({
      "replicatedJobs":[{"name":"w","groupName":"g","replicas":2,
        "template":{"spec":{"anything":[1,{"x":null}]}},
        "dependsOn":[{"name":"v","status":"Complete"}]}],
      "network":{"enableDNSHostnames":false,"subdomain":"s","publishNotReadyAddresses":false},
      "successPolicy":{"operator":"Any","targetReplicatedJobs":["w"]},
      "failurePolicy":{"maxRestarts":3,"restartStrategy":"BlockingRecreate","rules":[
        {"name":"r","action":"RestartJobAndIgnoreMaxRestarts","onJobFailureReasons":["x"],
         "onJobFailureMessagePatterns":["y"],"targetReplicatedJobs":["w"]}]},
      "startupPolicy":{"startupPolicyOrder":"InOrder"},
      "suspend":true,"coordinator":{"replicatedJob":"w","jobIndex":1,"podIndex":2},
      "managedBy":"a/b","ttlSecondsAfterFinished":5,
      "volumeClaimPolicies":[{"templates":[{"metadata":{"name":"d"}}],
                              "retentionPolicy":{"whenDeleted":"Retain"}}]})");
  EXPECT_TRUE(equal(encode_spec(decode(to_text(spec)).spec), spec));
}

TEST(JobSet, EncodesZeroCountsOfJobsButNoCountThatWasNeverSet) {
  const Json status = json(R"({"restarts":0,"replicatedJobsStatus":[
      {"name":"w","ready":0,"succeeded":0,"failed":0,"active":0,"suspended":0}]})");
  EXPECT_TRUE(equal(encode_status(decode("{}", to_text(status)).status), status));
  EXPECT_EQ(to_text(encode_status({})), "{}");
}

TEST(JobSet, TemplateIsReadWhereItIsNeeded) {
  const JobSet jobset = decode(R"({"replicatedJobs":[
      {"name":"a","template":{"spec":{"parallelism":2,"completions":4,"completionMode":"NonIndexed",
        "template":{"spec":{"x":1}}}}},
      {"name":"b","template":{"spec":{"parallelism":"2"}}}]})");
  const auto& a = jobset.spec.replicated_jobs[0];
  EXPECT_EQ(a.parallelism(), 2);
  EXPECT_EQ(a.completions(), 4);
  EXPECT_FALSE(a.is_indexed());
  EXPECT_EQ(to_text(*a.pod_spec()), R"({"x":1})");
  const auto& b = jobset.spec.replicated_jobs[1];
  EXPECT_EQ(b.parallelism(), std::nullopt);
  EXPECT_TRUE(b.is_indexed());
  EXPECT_EQ(b.pod_template(), nullptr);
  EXPECT_EQ(jobset.find_replicated_job("b"), &b);
  EXPECT_EQ(jobset.find_replicated_job("c"), nullptr);
}

TEST(JobSet, CrdIsSmallAndRefusesWhatTheControllerRefuses) {
  const Json crd = jobset_crd();
  EXPECT_LT(to_text(crd).size(), 100U << 10);
  EXPECT_EQ(string_or(at(crd, "metadata", "name")), "jobsets.jobset.x-k8s.io");
  const std::string text = to_text(crd);
  EXPECT_THAT(text, testing::HasSubstr("StartupPolicy and DependsOn APIs are mutually exclusive"));
  EXPECT_THAT(text,
              testing::HasSubstr("namespace cannot be set for VolumeClaimPolicies templates"));
  const Json* spec = at(at(crd, "spec", "versions")->as_array()[0], "schema", "openAPIV3Schema",
                        "properties", "spec", "properties");
  ASSERT_NE(spec, nullptr);
  EXPECT_EQ(to_text(*at(*spec, "network", "default")),
            R"({"enableDNSHostnames":true,"publishNotReadyAddresses":true})");
  for (const auto* key :
       {"network", "successPolicy", "failurePolicy", "startupPolicy", "volumeClaimPolicies"}) {
    EXPECT_EQ(to_text(*at(*spec, key, "x-kubernetes-validations")),
              R"([{"rule":"self == oldSelf","message":"Value is immutable"}])")
        << key;
  }
  EXPECT_EQ(to_text(*at(*spec, "replicatedJobs", "items", "properties", "template", "properties",
                        "spec", "properties", "completionMode", "default")),
            "\"Indexed\"");
}

}  // namespace
}  // namespace grapnel::api
