#include "kube/url.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace grapnel::kube {
namespace {

using testing::HasSubstr;

TEST(Url, PathsOfCollections) {
  EXPECT_EQ(collection_path(kinds::kPod, "").value(), "/api/v1/pods");
  EXPECT_EQ(collection_path(kinds::kPod, "team-a").value(), "/api/v1/namespaces/team-a/pods");
  EXPECT_EQ(collection_path(kinds::kJob, "team-a").value(),
            "/apis/batch/v1/namespaces/team-a/jobs");
  EXPECT_EQ(collection_path(kinds::kNode, "ignored").value(), "/api/v1/nodes");
}

TEST(Url, PathsOfObjects) {
  struct Case {
    Kind kind;
    Where where;
    std::string path;
  };
  for (const Case& c : std::vector<Case>{
           {kinds::kPod, {"a", "b", ""}, "/api/v1/namespaces/a/pods/b"},
           {kinds::kPod, {"a", "b", "log"}, "/api/v1/namespaces/a/pods/b/log"},
           {kinds::kNode, {"", "n", "status"}, "/api/v1/nodes/n/status"},
           {kinds::kNamespace, {"", "n", "finalize"}, "/api/v1/namespaces/n/finalize"},
           {kinds::kService,
            {"a", "http:s:80", "proxy/api/jobs"},
            "/api/v1/namespaces/a/services/http%3As%3A80/proxy/api/jobs"},
           {kinds::kConfigMap,
            {"a", "100% sure?", ""},
            "/api/v1/namespaces/a/configmaps/100%25%20sure%3F"},
       }) {
    EXPECT_EQ(object_path(c.kind, c.where).value(), c.path);
  }
}

TEST(Url, WhatWouldMeanSomethingElseIsRefused) {
  struct Case {
    Where where;
    std::string message;
  };
  for (const Case& c : std::vector<Case>{
           {{"a", "", ""}, "a Pod is asked for without a name"},
           {{"", "b", ""}, "Pod 'b' is asked for without a namespace"},
           {{"a", "..", ""}, "name '..' cannot be part of a path"},
           {{"..", "b", ""}, "namespace '..' cannot be part of a path"},
           {{"a", "b/c", ""}, "name 'b/c' cannot be part of a path"},
           {{"a", "b", "proxy/../../secrets"}, "subresource '..' cannot be part of a path"},
       }) {
    const auto path = object_path(kinds::kPod, c.where);
    ASSERT_FALSE(path) << *path;
    EXPECT_EQ(path.error().reason, Reason::kUsage);
    EXPECT_EQ(path.error().message, c.message);
  }
  EXPECT_FALSE(collection_path(kinds::kPod, "a/b").has_value());
}

TEST(Url, Queries) {
  EXPECT_EQ(Query().text(), "");
  Query query;
  query.add("labelSelector", "app in (a,b),x=y&z")
      .add("fieldSelector", "")
      .add("limit", 500)
      .add_flag("watch", true)
      .add_flag("follow", false);
  EXPECT_EQ(query.text(), "?labelSelector=app%20in%20%28a%2Cb%29%2Cx%3Dy%26z&limit=500&watch=true");
  const std::vector<std::string> words{"sh", "-c", ""};
  EXPECT_EQ(Query().add_all("command", words).text(), "?command=sh&command=-c&command=");
}

}  // namespace
}  // namespace grapnel::kube
