#include "local/builtin/definitions/plan.h"

#include <gtest/gtest.h>

namespace grapnel::local {
namespace {

constexpr kube::Kind kWidget{"example.com", "v1", "Widget", "widgets"};

TEST(DefinitionPlan, ObjectsGoBeforeIt) {
  kube::Meta meta;
  meta.key = {Interned(), "widgets.example.com"};
  kube::Meta object;
  object.key = {Interned("ns"), "w"};
  const auto planned = [&](bool knows_all, bool has_object) {
    DefinitionObserved observed{.meta = meta, .kind = &kWidget, .knows_all = knows_all};
    if (has_object) observed.objects.push_back(&object);
    return plan(observed);
  };
  EXPECT_TRUE(planned(true, true).empty()) << "it stays";
  meta.deleted = Time{};
  EXPECT_TRUE(planned(true, true).empty()) << "it is not ours to finish";
  meta.finalizers.emplace_back("customresourcecleanup.apiextensions.k8s.io");
  meta.finalizers.emplace_back("other");
  EXPECT_EQ(runtime::describe(planned(true, true)), "delete Widget ns/w\n");
  EXPECT_TRUE(planned(false, false).empty());
  EXPECT_TRUE(planned(false, false).look_again);
  EXPECT_EQ(runtime::describe(planned(true, false)),
            "patch CustomResourceDefinition widgets.example.com "
            "{\"metadata\":{\"finalizers\":[\"other\"]}}\n");
  object.deleted = Time{};
  EXPECT_TRUE(planned(true, true).empty()) << "it is on its way";
}

}  // namespace
}  // namespace grapnel::local
