#include "kube/access.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>

#include "base/strings.h"
#include "kube/fake_test.h"

namespace grapnel::kube {
namespace {

using testing::HasSubstr;
using testing::Not;

constexpr std::string_view kCertificate =
    "-----BEGIN CERTIFICATE-----\nQUJD\n-----END CERTIFICATE-----\n";
constexpr std::string_view kKey = "-----BEGIN PRIVATE KEY-----\nQUJD\n-----END PRIVATE KEY-----\n";

struct AccessTest : testing::Test {
  std::filesystem::path folder = unique_folder();
  std::map<std::string, std::string> variables;
  AccessOptions options{.environment =
                            [this](const std::string& name) {
                              const auto found = variables.find(name);
                              return found == variables.end() ? "" : found->second;
                            },
                        .service_account_folder = folder / "sa"};

  AccessTest() {
    std::filesystem::remove_all(folder);
    std::filesystem::create_directories(folder / "sa");
  }
  ~AccessTest() override { std::filesystem::remove_all(folder); }

  std::string write(const std::string& name, std::string_view text) {
    std::ofstream(folder / name) << text;
    return folder / name;
  }
  // A kubeconfig with these fields of its cluster and user.
  std::string config(std::string_view cluster, std::string_view user,
                     const std::string& name = "config") {
    return write(name, fmt::format("current-context: c\n"
                                   "contexts: [{{name: c, context: {{cluster: k, user: u}}}}]\n"
                                   "clusters:\n- name: k\n  cluster: {{{}}}\n"
                                   "users:\n- name: u\n  user: {{{}}}\n",
                                   cluster, user));
  }
  Result<Access> access(std::string_view cluster, std::string_view user) {
    options.kubeconfig = config(cluster, user);
    return find_access(options);
  }
  std::string refusal(std::string_view cluster, std::string_view user) {
    auto found = access(cluster, user);
    return found ? "was accepted" : found.error().message;
  }
};

TEST_F(AccessTest, TokensAndPasswords) {
  auto found = access("server: 'https://h:1'", "token: abc");
  ASSERT_TRUE(found) << found.error().message;
  EXPECT_EQ(found->server, "https://h:1");
  EXPECT_EQ(found->ns, "default");
  EXPECT_EQ(found->context, "c");
  EXPECT_EQ(found->headers.get("Authorization"), "Bearer abc");

  found = access("server: 'https://h:1'", "username: me, password: secret");
  EXPECT_EQ(found.value().headers.get("Authorization"), "Basic bWU6c2VjcmV0");

  found = access("server: 'https://h:1'", "token: abc, tokenFile: sub/token");
  EXPECT_EQ(found.value().token_file, (folder / "sub/token").string()) << "the file is the newer";
  EXPECT_FALSE(found->headers.has("Authorization"));

  found = access("server: 'https://h:1'",
                 "as: x, as-uid: '7', as-groups: [g], as-user-extra: {Acme/Scope: [s]}");
  EXPECT_EQ(found.value().headers.get("Impersonate-User"), "x");
  EXPECT_EQ(found->headers.get("Impersonate-Uid"), "7");
  EXPECT_EQ(found->headers.get("Impersonate-Group"), "g");
  EXPECT_EQ(found->headers.get("Impersonate-Extra-acme%2Fscope"), "s");
}

TEST_F(AccessTest, CertificatesFromFilesAndFromTheConfigItself) {
  write("ca.crt", kCertificate);
  const std::string data = base64_encode(kCertificate);
  auto found = access(
      "server: 'HTTPS://h', certificate-authority: ca.crt, tls-server-name: name, "
      "proxy-url: 'socks5://p:1080'",
      fmt::format("client-certificate-data: {}, client-certificate: none, "
                  "client-key-data: {}",
                  data, base64_encode(kKey)));
  ASSERT_TRUE(found) << found.error().message;
  EXPECT_EQ(found->server, "https://h");
  EXPECT_EQ(found->authority.text, kCertificate);
  EXPECT_EQ(found->authority.file, (folder / "ca.crt").string());
  EXPECT_EQ(found->certificate.text, kCertificate);
  EXPECT_EQ(found->certificate.file, "") << "data wins over a file";
  EXPECT_EQ(found->key.text, kKey);
  EXPECT_EQ(found->server_name, "name");
  EXPECT_EQ(found->proxy_url, "socks5://p:1080");
}

TEST_F(AccessTest, Plugins) {
  write("ca.crt", kCertificate);
  auto found = access("server: 'https://h', certificate-authority: ca.crt",
                      "exec: {apiVersion: client.authentication.k8s.io/v1, command: bin/login, "
                      "interactiveMode: Never}");
  ASSERT_TRUE(found) << found.error().message;
  EXPECT_EQ(found->exec.value().command, (folder / "bin/login").string());
  EXPECT_EQ(string_or(find(found->exec_cluster, "server")), "https://h");
  EXPECT_EQ(string_or(find(found->exec_cluster, "certificate-authority-data")),
            base64_encode(kCertificate));
  EXPECT_THAT(found->user_at, HasSubstr("users[0]"));
}

TEST_F(AccessTest, AServerWithoutASchemeIsReadAsKubectlDoes) {
  EXPECT_EQ(access("server: 'h:8080'", "").value().server, "http://h:8080");
  EXPECT_EQ(access("server: 'h:6443', insecure-skip-tls-verify: true", "").value().server,
            "https://h:6443");
}

TEST_F(AccessTest, NothingSecretGoesOverPlainHttp) {
  const auto found = access("server: 'http://h'", "token: abc, client-key: none");
  ASSERT_TRUE(found) << found.error().message;
  EXPECT_FALSE(found->headers.has("Authorization"));
}

TEST_F(AccessTest, RefusalsNameThePlaceAndTheCure) {
  write("ca.crt", kCertificate);
  write("key", kKey);
  write("rubbish", "not a certificate");
  struct Case {
    std::string cluster, user, message;
  };
  const std::string server = "server: 'https://h'";
  for (const Case& c : std::vector<Case>{
           {"", "", "clusters[0].cluster.server: is missing"},
           {"proxy-url: x", "", "clusters[0].cluster.server: is missing; write the URL"},
           {"server: 'ftp://h'", "", "'ftp://h' is not a URL of https or http"},
           {"server: 'https://'", "", "has no host"},
           {"server: 'https://:6443'", "", "has no host"},
           {"server: 'https://h:99999'", "", "has a port that is not in 1 to 65535"},
           {"server: 'https://h:port'", "", "has a port that is not in 1 to 65535"},
           {"server: 'https://[::1:6443'", "", "has a '[' without its ']'"},
           {"server: 'https://h/?a=b'", "", "may not have a query or fragment"},
           {"server: 'https://h h'", "", "holds a blank"},
           {server + ", proxy-url: 'proxy:3128'", "", "cluster.proxy-url: 'proxy:3128' is not a"},
           {server + ", certificate-authority: none.crt", "",
            "cluster.certificate-authority: cannot read '" + (folder / "none.crt").string() +
                "': no such file or directory"},
           {server + ", certificate-authority: rubbish", "", "holds no PEM block"},
           {server + ", certificate-authority-data: '***'", "",
            "cluster.certificate-authority-data: not base64"},
           {server + ", certificate-authority: ca.crt, insecure-skip-tls-verify: true", "",
            "cannot be set together with certificate-authority"},
           {server, "client-certificate: ca.crt",
            "user.client-key: is missing; a certificate and its key go together"},
           {server, "client-key: key", "user.client-certificate: is missing"},
           {server, "client-key: ca.crt, client-certificate: ca.crt",
            "user.client-key: holds no PEM block 'PRIVATE KEY"},
           {server, "client-certificate: .", "is a directory"},
           {server, "auth-provider: {name: oidc}", "'oidc': auth providers are not supported"},
           {server, "token: a, username: b", "both a token and a username are set"},
           {server,
            "token: a, exec: {apiVersion: client.authentication.k8s.io/v1beta1, command: c}",
            "both exec and a token are set"},
           {server,
            "username: a, exec: {apiVersion: client.authentication.k8s.io/v1beta1, command: c}",
            "both exec and a username are set"},
           {server, R"(token: "a\nb")", "becomes the header Authorization holds a line break"},
           {server, R"(as: "a\r\nX: y")", "becomes the header Impersonate-User holds a line break"},
           {server, "as-groups: [g]", "user.as: is missing"},
       }) {
    const std::string message = refusal(c.cluster, c.user);
    EXPECT_THAT(message, HasSubstr(c.message));
    EXPECT_THAT(message, testing::StartsWith((folder / "config").string() + ":"));
  }
}

TEST_F(AccessTest, FindsItsFilesAsKubectlDoes) {
  const auto named = [](std::string_view name) {
    return fmt::format(
        "current-context: c\ncontexts: [{{name: c, context: {{cluster: k}}}}]\n"
        "clusters: [{{name: k, cluster: {{server: 'https://{}'}}}}]\n",
        name);
  };
  std::filesystem::create_directories(folder / ".kube");
  write(".kube/config", named("home"));
  variables["HOME"] = folder;
  EXPECT_EQ(find_access(options).value().server, "https://home");
  const std::string a = write("a", named("a"));
  const std::string b = write("b", named("b"));
  variables["KUBECONFIG"] = fmt::format("{}::{}:{}", (folder / "none").string(), a, b);
  EXPECT_EQ(find_access(options).value().server, "https://a");
  options.kubeconfig = b;
  EXPECT_EQ(find_access(options).value().server, "https://b");
  options.context = "elsewhere";
  EXPECT_THAT(find_access(options).error().message,
              HasSubstr("context 'elsewhere' does not exist; there are: c"));
  options.kubeconfig = folder / "none";
  EXPECT_THAT(find_access(options).error().message, HasSubstr("none: no such file or directory"));
}

TEST_F(AccessTest, SaysWhereItLookedWhenThereIsNothing) {
  EXPECT_EQ(find_access(options).error().message,
            "no kubeconfig: neither KUBECONFIG nor HOME is set; name one with --kubeconfig or "
            "KUBECONFIG");
  variables["HOME"] = "/nonexistent";
  EXPECT_EQ(find_access(options).error().message,
            "no kubeconfig: /nonexistent/.kube/config does not exist; name one with --kubeconfig "
            "or KUBECONFIG");
  variables["KUBECONFIG"] = folder;
  EXPECT_THAT(find_access(options).error().message, HasSubstr("is a directory"));
}

TEST_F(AccessTest, InsideACluster) {
  variables = {{"KUBERNETES_SERVICE_HOST", "10.96.0.1"}, {"KUBERNETES_SERVICE_PORT", "443"}};
  EXPECT_THAT(find_access(options).error().message, HasSubstr("automountServiceAccountToken"));
  write("sa/token", "t\n");
  write("sa/ca.crt", kCertificate);
  auto found = find_access(options);
  ASSERT_TRUE(found) << found.error().message;
  EXPECT_EQ(found->server, "https://10.96.0.1:443");
  EXPECT_EQ(found->ns, "default");
  write("sa/namespace", "team-a\n");
  variables["KUBERNETES_SERVICE_HOST"] = "fd00::1";
  found = find_access(options);
  ASSERT_TRUE(found) << found.error().message;
  EXPECT_EQ(found->server, "https://[fd00::1]:443");
  EXPECT_EQ(found->ns, "team-a");
  EXPECT_EQ(found->token_file, (folder / "sa/token").string());
  EXPECT_EQ(found->authority.file, (folder / "sa/ca.crt").string());
  EXPECT_EQ(found->authority.text, kCertificate);
  EXPECT_EQ(found->context, "");

  variables["KUBERNETES_SERVICE_PORT"] = "";
  EXPECT_THAT(find_access(options).error().message, HasSubstr("has a port"));
  variables["KUBERNETES_SERVICE_PORT"] = "443";
  options.context = "dev";
  EXPECT_FALSE(find_access(options).has_value()) << "a context was asked for by name";
  options.context = "";
  options.kubeconfig = config("server: 'https://h'", "");
  EXPECT_EQ(find_access(options).value().server, "https://h") << "a named file wins";
}

}  // namespace
}  // namespace grapnel::kube
