#include "local/builtin/objects/discovery.h"

#include <gtest/gtest.h>

namespace grapnel::local {
namespace {

TEST(Discovery, TakesEachKindOnceInThePreferredVersion) {
  const auto document = parse_json(R"({"items":[
    {"metadata":{},"versions":[{"version":"v1","resources":[
      {"resource":"nodes","scope":"Cluster","responseKind":{"kind":"Node"},
       "verbs":["delete","list","watch"]},
      {"resource":"bindings","scope":"Namespaced","responseKind":{"kind":"Binding"},
       "verbs":["create"]}]}]},
    {"metadata":{"name":"example.com"},"versions":[
      {"version":"v2","resources":[{"resource":"widgets","scope":"Namespaced",
       "responseKind":{"kind":"Widget"},"verbs":["delete","list","watch"]}]},
      {"version":"v1","resources":[{"resource":"widgets","scope":"Namespaced",
       "responseKind":{"kind":"Widget"},"verbs":["delete","list","watch"]}]}]}]})");
  ASSERT_TRUE(document);
  const std::vector<kube::Kind> expected{{"", "v1", "Node", "nodes", false},
                                         {"example.com", "v2", "Widget", "widgets", true}};
  EXPECT_EQ(kinds_of_discovery(*document), expected);
}

TEST(Discovery, OfNonsenseIsEmpty) {
  EXPECT_TRUE(kinds_of_discovery(Json()).empty());
  EXPECT_TRUE(kinds_of_discovery(*parse_json(R"({"items":[{"versions":[3]}, 1]})")).empty());
}

}  // namespace
}  // namespace grapnel::local
