#include "kube/kubeconfig.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace grapnel::kube {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Pair;

constexpr std::string_view kGood = R"(apiVersion: v1
kind: Config
preferences: {}
current-context: dev
clusters:
- name: local
  cluster:
    server: https://127.0.0.1:6443
    certificate-authority: pki/ca.crt
    tls-server-name: kubernetes
    proxy-url: http://proxy:3128
    extensions:
    - name: other
      extension: 1
    - name: client.authentication.k8s.io/exec
      extension: {audience: me}
- name: open
  cluster: {server: "http://127.0.0.1:8080", insecure-skip-tls-verify: true}
users:
- name: alice
  user:
    client-certificate-data: Q0VSVA==
    client-key: alice.key
    as: root
    as-uid: "7"
    as-groups: [a, b]
    as-user-extra: {scopes: [x, z]}
- name: bob
  user:
    exec:
      apiVersion: client.authentication.k8s.io/v1
      command: login
      args: [--now]
      env:
      - {name: REGION, value: eu}
      - {name: EMPTY}
      interactiveMode: Never
      provideClusterInfo: true
      installHint: get it
- name: carol
contexts:
- name: dev
  context: {cluster: local, user: alice, namespace: team-a}
- name: anonymous
  context: {cluster: open}
)";

TEST(Kubeconfig, ReadsEveryField) {
  const auto config = parse_kubeconfig(kGood, "/home/me/.kube/config");
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_EQ(config->current_context, "dev");
  ASSERT_EQ(config->clusters.size(), 2U);
  const ClusterEntry& local = config->clusters[0];
  EXPECT_EQ(local.server, "https://127.0.0.1:6443");
  EXPECT_EQ(local.origin.resolve(local.certificate_authority), "/home/me/.kube/pki/ca.crt");
  EXPECT_EQ(local.origin.resolve("/abs/ca"), "/abs/ca");
  EXPECT_EQ(local.tls_server_name, "kubernetes");
  EXPECT_EQ(local.proxy_url, "http://proxy:3128");
  EXPECT_EQ(to_text(local.exec_config), R"({"audience":"me"})");
  EXPECT_TRUE(config->clusters[1].insecure_skip_tls_verify);
  ASSERT_EQ(config->users.size(), 3U);
  const UserEntry& alice = config->users[0];
  EXPECT_EQ(alice.client_certificate_data, "Q0VSVA==");
  EXPECT_EQ(alice.client_key, "alice.key");
  EXPECT_EQ(alice.as, "root");
  EXPECT_EQ(alice.as_uid, "7");
  EXPECT_THAT(alice.as_groups, ElementsAre("a", "b"));
  EXPECT_THAT(alice.as_extra, ElementsAre(Pair("scopes", "x"), Pair("scopes", "z")));
  const ExecPlugin& exec = config->users[1].exec.value();
  EXPECT_EQ(exec.command, "login");
  EXPECT_THAT(exec.arguments, ElementsAre("--now"));
  EXPECT_THAT(exec.environment, ElementsAre(Pair("REGION", "eu"), Pair("EMPTY", "")));
  EXPECT_EQ(exec.interactive, ExecPlugin::Interactive::kNever);
  EXPECT_TRUE(exec.provide_cluster_info);
  EXPECT_EQ(exec.install_hint, "get it");

  const auto chosen = choose_context(*config, "");
  EXPECT_EQ(chosen.value().cluster, &local);
  EXPECT_EQ(chosen.value().user, &alice);
  EXPECT_EQ(chosen.value().context->ns, "team-a");
  EXPECT_EQ(choose_context(*config, "anonymous").value().user, nullptr);
}

TEST(Kubeconfig, WhatIsNotSaidIsEmpty) {
  for (const std::string_view text : {"", "# nothing\n", "{}", "clusters: null\nusers: []\n",
                                      R"({"kind":"Config"})", "unknown: {field: [1]}\n"}) {
    const auto config = parse_kubeconfig(text);
    ASSERT_TRUE(config) << text << ": " << config.error().message;
    EXPECT_TRUE(config->clusters.empty());
  }
}

TEST(Kubeconfig, TheFirstToSaySomethingWins) {
  auto first = parse_kubeconfig(R"(
clusters: [{name: a, cluster: {server: "https://first"}}]
users: [{name: u, user: {token: one}}]
)",
                                "/x/first");
  auto second = parse_kubeconfig(R"(
current-context: c
clusters:
- {name: a, cluster: {server: "https://second", tls-server-name: not-taken}}
- {name: b, cluster: {server: "https://b", certificate-authority: ca}}
contexts: [{name: c, context: {cluster: b, user: u}}]
)",
                                 "/y/second");
  auto third = parse_kubeconfig("current-context: d", "third");
  const Kubeconfig merged = merge_kubeconfigs({*first, *second, *third});
  EXPECT_EQ(merged.current_context, "c");
  ASSERT_EQ(merged.clusters.size(), 2U);
  EXPECT_EQ(merged.clusters[0].server, "https://first");
  EXPECT_EQ(merged.clusters[0].tls_server_name, "") << "an entry is taken whole";
  EXPECT_EQ(merged.clusters[1].origin.resolve("ca"), "/y/ca");
  const auto chosen = choose_context(merged, "");
  EXPECT_EQ(chosen.value().user->token, "one");
  EXPECT_EQ(merge_kubeconfigs({}).files.size(), 0U);
}

struct Malformed {
  std::string name;
  std::string text;
  std::string message;
  friend void PrintTo(const Malformed& m, std::ostream* out) { *out << m.text; }
};

class MalformedKubeconfig : public testing::TestWithParam<Malformed> {};

TEST_P(MalformedKubeconfig, SaysWhereAndWhatToDo) {
  auto config = parse_kubeconfig(GetParam().text, "config");
  auto chosen = config ? choose_context(*config, "") : Result<ChosenContext>();
  const Error error = config ? chosen.error() : config.error();
  EXPECT_FALSE(config && chosen) << "was accepted";
  EXPECT_THAT(error.message, testing::StartsWith("config"));
  EXPECT_THAT(error.message, HasSubstr(GetParam().message));
}

std::string exec_with(std::string_view fields) {
  return fmt::format("users:\n- name: u\n  user:\n    exec: {{{}}}\n", fields);
}

INSTANTIATE_TEST_SUITE_P(
    Cases, MalformedKubeconfig,
    testing::ValuesIn(std::vector<Malformed>{
        {"NotYaml", "clusters: [", "config: "},
        {"Tab", "clusters:\n\t- name: a\n", "config: "},
        {"AList", "- a\n- b\n", "config: not a kubeconfig: expected an object, found"},
        {"AScalar", "just text\n", "config: not a kubeconfig: expected an object, found a string"},
        {"TwoDocuments", "kind: Config\n---\nkind: Config\n", "config: 2 documents where one"},
        {"OtherKind", "kind: Pod\n", "config:1:1: kind: 'Pod' is not a kubeconfig"},
        {"OtherVersion", "apiVersion: v2\n", "config:1:1: apiVersion: 'v2' is not supported"},
        {"KindIsNumber", "kind: 3\n", "config:1:1: kind: expected a string"},
        {"ClustersIsObject", "clusters: {a: b}\n", "config:1:1: clusters: expected"},
        {"ClusterIsText", "clusters: [a]\n", "config:1:12: clusters[0]: expected an object"},
        {"ClusterWithoutName", "clusters:\n- cluster: {server: x}\n",
         "clusters[0].name: is missing; contexts find the entry by it"},
        {"ServerIsList", "clusters:\n- name: a\n  cluster:\n    server: [x]\n",
         "config:4:5: clusters[0].cluster.server: expected a string, found"},
        {"InsecureIsText",
         "clusters:\n- name: a\n  cluster: {insecure-skip-tls-verify: \"true\"}\n",
         "clusters[0].cluster.insecure-skip-tls-verify: expected"},
        {"DuplicateCluster", "clusters:\n- name: a\n- name: b\n- name: a\n",
         "config:4:3: clusters[2].name: 'a' is there twice; rename one"},
        {"DuplicateKey", "kind: Config\nkind: Config\n", "config: "},
        {"UserIsNull", "users: [null]\n", "users[0]: expected an object, found null"},
        {"TokenIsNumber", "users:\n- name: a\n  user: {token: 12345}\n",
         "config:3:10: users[0].user.token: expected a string, found an integer; put the value in "
         "quotes"},
        {"GroupsIsText", "users:\n- name: a\n  user: {as: x, as-groups: admin}\n",
         "users[0].user.as-groups: expected a"},
        {"ExtraIsText", "users:\n- name: a\n  user: {as-user-extra: {scopes: x}}\n",
         "users[0].user.as-user-extra.scopes: expected a"},
        {"ProviderWithoutName", "users:\n- name: a\n  user: {auth-provider: {}}\n",
         "users[0].user.auth-provider.name: is missing"},
        {"ExecWithoutVersion", exec_with("command: c"),
         "users[0].user.exec.apiVersion: is missing"},
        {"ExecOldVersion",
         exec_with("apiVersion: client.authentication.k8s.io/v1alpha1, command: c"),
         "'client.authentication.k8s.io/v1alpha1' is not supported; allowed are"},
        {"ExecWithoutCommand", exec_with("apiVersion: client.authentication.k8s.io/v1beta1"),
         "users[0].user.exec.command: is missing; name the program"},
        {"ExecWithoutMode", exec_with("apiVersion: client.authentication.k8s.io/v1, command: c"),
         "users[0].user.exec.interactiveMode: is missing"},
        {"ExecOddMode",
         exec_with("apiVersion: client.authentication.k8s.io/v1, command: c, interactiveMode: no"),
         "users[0].user.exec.interactiveMode: expected a string"},
        {"ExecUnknownMode",
         exec_with("apiVersion: client.authentication.k8s.io/v1, command: c, "
                   "interactiveMode: Sometimes"),
         "'Sometimes' is unknown; allowed are Never, IfAvailable and Always"},
        {"ExecArgsText",
         exec_with("apiVersion: client.authentication.k8s.io/v1beta1, command: c, args: x"),
         "users[0].user.exec.args: expected"},
        {"ExecArgNumber",
         exec_with("apiVersion: client.authentication.k8s.io/v1beta1, command: c, args: [1]"),
         "users[0].user.exec.args[0]: expected a string"},
        {"ExecEnvWithoutName",
         exec_with("apiVersion: client.authentication.k8s.io/v1beta1, command: c, "
                   "env: [{value: x}]"),
         "users[0].user.exec.env[0].name: is missing"},
        {"NoCurrentContext", "contexts:\n- name: a\n- name: b\n",
         "config: current-context is not set; choose one with --context or `kubectl config "
         "use-context`: a, b"},
        {"Nothing", "{}",
         "config: current-context is not set; choose one with --context or "
         "`kubectl config use-context`: none"},
        {"UnknownContext", "current-context: prodd\ncontexts:\n- name: prod\n- name: dev\n",
         "config: current-context 'prodd' does not exist (did you mean 'prod'?); there are: prod, "
         "dev"},
        {"ContextWithoutCluster", "current-context: a\ncontexts:\n- name: a\n",
         "contexts[0].context.cluster: is missing; name one of: none"},
        {"UnknownCluster",
         "current-context: a\nclusters:\n- name: local\ncontexts:\n- name: a\n"
         "  context: {cluster: locl}\n",
         "config:6:13: contexts[0].context.cluster: there is no cluster 'locl' (did you mean "
         "'local'?); there are: local"},
        {"UnknownUser",
         "current-context: a\nclusters:\n- name: local\ncontexts:\n- name: a\n"
         "  context: {cluster: local, user: bob}\n",
         "config:6:29: contexts[0].context.user: there is no user 'bob'; there are: none"},
        {"CurrentContextIsList", "current-context: [a]\n",
         "config:1:1: current-context: expected a string"},
    }),
    [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace grapnel::kube
