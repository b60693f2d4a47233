#include "local/builtin/namespaces/plan.h"

#include <gtest/gtest.h>

namespace grapnel::local {
namespace {

const Time kNow = *parse_time("2026-01-01T12:00:00Z");

Namespace ending() {
  Namespace ns{.finalizers = {"kubernetes"}, .status = JsonObject{{"phase", "Terminating"}}};
  ns.meta.key = {Interned(), "n"};
  ns.meta.uid = kube::Uid("u");
  ns.meta.deleted = kNow;
  return ns;
}

std::string condition(const NamespacePlan& p, std::string_view type) {
  for (const Json& one : at(p.plan.status->body, "status", "conditions")->as_array()) {
    if (string_or(find(one, "type")) == type) {
      return fmt::format("{}: {}", string_or(find(one, "status")), string_or(find(one, "message")));
    }
  }
  return "";
}

TEST(NamespacePlan, LeavesOneThatStays) {
  Namespace ns = ending();
  ns.meta.deleted.reset();
  const auto p = plan(NamespaceObserved{.ns = ns, .knows_all = true}, kNow);
  EXPECT_TRUE(p.plan.empty());
  EXPECT_FALSE(p.finalized);
}

TEST(NamespacePlan, DeletesItsContentAndSaysWhatIsLeft) {
  const Namespace ns = ending();
  kube::Meta pod;
  pod.key = {Interned("n"), "p"};
  pod.finalizers.emplace_back("example.com/hold");
  kube::Meta going = pod;
  going.key.name = "q";
  going.deleted = kNow;
  const auto p = plan({.ns = ns,
                       .content = {{&kube::kinds::kPod, &pod}, {&kube::kinds::kPod, &going}},
                       .knows_all = true},
                      kNow);
  ASSERT_EQ(p.plan.stages.size(), 1U);
  ASSERT_EQ(p.plan.stages[0].size(), 1U);
  EXPECT_EQ(runtime::describe(p.plan.stages[0][0]), "delete Pod n/p");
  EXPECT_FALSE(p.finalized);
  EXPECT_EQ(condition(p, "NamespaceContentRemaining"),
            "True: Some resources are remaining: pods. has 2 resource instances");
  EXPECT_EQ(condition(p, "NamespaceFinalizersRemaining"),
            "True: Some content in the namespace has finalizers remaining: example.com/hold in 2 "
            "resource instances");
}

TEST(NamespacePlan, IsFinalizedWhenEmpty) {
  const Namespace ns = ending();
  const auto p = plan(NamespaceObserved{.ns = ns, .knows_all = true}, kNow);
  ASSERT_TRUE(p.finalized);
  EXPECT_TRUE(at(*p.finalized, "spec", "finalizers")->as_array().empty());
  EXPECT_EQ(string_or(at(*p.finalized, "metadata", "uid")), "u");
}

TEST(NamespacePlan, WaitsWhileItCannotKnowAll) {
  const Namespace ns = ending();
  const auto p = plan(NamespaceObserved{.ns = ns}, kNow);
  EXPECT_FALSE(p.finalized);
  EXPECT_TRUE(p.plan.look_again);
}

TEST(NamespaceFurniture, IsThereAndStaysRight) {
  Namespace ns = ending();
  ns.meta.deleted.reset();
  EXPECT_EQ(runtime::describe(plan(NamespaceFurniture{.ns = ns}, "pem")),
            "create ServiceAccount n/default\ncreate ConfigMap n/kube-root-ca.crt\n");
  EXPECT_EQ(runtime::describe(plan(
                NamespaceFurniture{.ns = ns, .has_account = true, .certificate = "old"}, "pem")),
            "patch ConfigMap n/kube-root-ca.crt {\"data\":{\"ca.crt\":\"pem\"}}\n");
  EXPECT_TRUE(
      plan(NamespaceFurniture{.ns = ns, .has_account = true, .certificate = "pem"}, "pem").empty());
  ns.meta.deleted = kNow;
  EXPECT_TRUE(plan(NamespaceFurniture{.ns = ns}, "pem").empty());
}

}  // namespace
}  // namespace grapnel::local
