// The whole way: a kubeconfig on disk, TLS, credentials, and a server of our own at the end.
#include "kube/connect.h"

#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>

#include "base/strings.h"
#include "http/certificates.h"
#include "http/server.h"
#include "kube/fake_test.h"

namespace grapnel::kube {
namespace {

using testing::HasSubstr;

http::CertificateOptions valid(std::string name) {
  const Time now = system_clock().now();
  return {.common_name = std::move(name),
          .names = {"127.0.0.1"},
          .not_before = now - hours(1),
          .not_after = now + hours(1)};
}

// A little of an API server. Who does not show the token it wants is unauthorized.
struct LittleServer {
  std::string token = "good";
  std::vector<std::string> asked;

  static Task<> serve(LittleServer& self, http::Exchange& exchange) {
    const http::Request& request = exchange.request();
    self.asked.push_back(request.method + " " + request.target);
    if (!self.token.empty() && request.headers.get("Authorization") != "Bearer " + self.token) {
      (void)co_await exchange.respond(
          {.status = 401, .body = R"({"kind":"Status","reason":"Unauthorized","message":"who?"})"});
    } else if (http::parse_target(request.target).has("watch")) {
      (void)co_await exchange.begin({.headers = {{"Content-Type", "application/json"}}});
      for (int i = 0; i < 3; ++i) (void)co_await exchange.write("{\"type\":\"ADDED\"}\n");
      (void)co_await exchange.finish();
    } else if (request.method == "POST") {
      (void)co_await exchange.respond({.status = 201, .body = request.body});
    } else {
      (void)co_await exchange.respond({.body = R"({"kind":"Pod"})"});
    }
  }
};

struct ConnectTest : LoopTest {
  std::filesystem::path folder = unique_folder();
  http::CertificateAndKey authority = http::make_authority(valid("authority")).value();
  LittleServer little;
  std::unique_ptr<http::Server> server;

  ConnectTest() {
    std::filesystem::remove_all(folder);
    std::filesystem::create_directories(folder);
    start({});
  }
  ~ConnectTest() override {
    server.reset();
    loop.restart();
    loop.run_for(milliseconds(20));  // the handlers that were cancelled
    std::filesystem::remove_all(folder);
  }

  void start(std::string client_ca) {
    const auto certificate = http::make_certificate(authority, valid("server")).value();
    server = http::start_server(
                 executor,
                 {.certificate_pem = certificate.certificate_pem,
                  .key_pem = certificate.key_pem,
                  .client_ca_pem = std::move(client_ca)},
                 [this](http::Exchange& exchange) { return LittleServer::serve(little, exchange); })
                 .value();
  }
  std::string write(const std::string& name, std::string_view text) {
    std::ofstream(folder / name, std::ios::trunc) << text;
    return folder / name;
  }
  Connection connected(std::string_view user) {
    write("ca.crt", authority.certificate_pem);
    const std::string config =
        write("config", fmt::format("current-context: c\n"
                                    "contexts: [{{name: c, context: {{cluster: k, user: u}}}}]\n"
                                    "clusters:\n- name: k\n  cluster:\n"
                                    "    server: https://127.0.0.1:{}\n"
                                    "    certificate-authority: ca.crt\n"
                                    "users:\n- name: u\n  user: {{{}}}\n",
                                    server->port(), user));
    auto connection = connect(executor, AccessOptions{.kubeconfig = config});
    if (!connection) throw std::runtime_error(connection.error().message);
    return std::move(*connection);
  }
  // A plugin that prints the n-th of these answers at its n-th run, the last one from then on.
  std::string plugin(const std::vector<std::string>& statuses) {
    for (size_t i = 0; i < statuses.size(); ++i) {
      write(fmt::format("answer-{}", i),
            fmt::format(R"({{"apiVersion":"client.authentication.k8s.io/v1",)"
                        R"("kind":"ExecCredential","status":{}}})",
                        statuses[i]));
    }
    write("plugin",
          fmt::format("cd '{}'; n=$(cat runs 2>/dev/null || echo 0); echo $((n+1)) > runs\n"
                      "cat answer-$n 2>/dev/null || cat answer-{}\n",
                      folder.string(), statuses.size() - 1));
    return fmt::format(
        "exec: {{apiVersion: client.authentication.k8s.io/v1, command: sh, args: ['{}'], "
        "interactiveMode: Never}}",
        (folder / "plugin").string());
  }
  int plugin_runs() const {
    int runs = 0;
    std::ifstream(folder / "runs") >> runs;
    return runs;
  }
};

Task<std::string> read_all(http::BodyStream& stream) {
  std::string text;
  for (;;) {
    auto piece = co_await stream.read();
    if (!piece) co_return "error: " + piece.error().message;
    if (piece->empty()) co_return text;
    text += *piece;
  }
}

const Where kPodB{.ns = "a", .name = "b"};

TEST_F(ConnectTest, VerbsOverTls) {
  const Connection connection = connected("token: good");
  EXPECT_EQ(connection.context, "c");
  EXPECT_EQ(connection.ns, "default");
  Client& client = *connection.client;
  EXPECT_EQ(string_or(find(run(client.get(kinds::kPod, kPodB)).value(), "kind")), "Pod");
  const Json object = parse_json(R"({"metadata":{"namespace":"a","name":"ü"}})").value();
  EXPECT_EQ(run(client.create(kinds::kPod, object)).value(), object);
  auto stream = run(client.open_watch(kinds::kPod, {})).value();
  EXPECT_EQ(run(read_all(*stream)),
            "{\"type\":\"ADDED\"}\n{\"type\":\"ADDED\"}\n"
            "{\"type\":\"ADDED\"}\n");
  EXPECT_THAT(little.asked,
              testing::ElementsAre("GET /api/v1/namespaces/a/pods/b",
                                   "POST /api/v1/namespaces/a/pods?fieldManager=grapnel",
                                   "GET /api/v1/pods?watch=true&allowWatchBookmarks=true&"
                                   "timeoutSeconds=300"));
}

TEST_F(ConnectTest, AStreamOutlivesTheClient) {
  std::unique_ptr<http::BodyStream> stream;
  {
    const Connection connection = connected("token: good");
    stream = run(connection.client->open_watch(kinds::kPod, {})).value();
  }
  EXPECT_THAT(run(read_all(*stream)), HasSubstr("ADDED"));
}

TEST_F(ConnectTest, AWrongTokenIsUnauthorized) {
  const Connection connection = connected("token: bad");
  const auto refused = run(connection.client->get(kinds::kPod, kPodB));
  EXPECT_EQ(refused.error().reason, Reason::kUnauthorized);
  EXPECT_EQ(refused.error().message, "who?");
  EXPECT_EQ(little.asked.size(), 1U);
}

TEST_F(ConnectTest, ATokenFileThatWasRenewed) {
  const std::string file = write("token", "old");
  const Connection connection = connected("tokenFile: token");
  EXPECT_FALSE(run(connection.client->get(kinds::kPod, kPodB)).has_value());
  write("token", "good\n");
  EXPECT_TRUE(run(connection.client->get(kinds::kPod, kPodB)).has_value());
}

TEST_F(ConnectTest, APluginRunsAgainWhenItsTokenIsRefused) {
  const Connection connection = connected(plugin({R"({"token":"bad"})", R"({"token":"good"})"}));
  EXPECT_TRUE(run(connection.client->get(kinds::kPod, kPodB)).has_value());
  EXPECT_EQ(plugin_runs(), 2);
  EXPECT_TRUE(run(connection.client->get(kinds::kPod, kPodB)).has_value());
  EXPECT_EQ(plugin_runs(), 2);

  little.token = "other";
  EXPECT_EQ(run(connection.client->get(kinds::kPod, kPodB)).error().reason, Reason::kUnauthorized);
  EXPECT_EQ(plugin_runs(), 3) << "once for a refusal, not for ever";
}

TEST_F(ConnectTest, APluginMayGiveACertificate) {
  auto options = valid("alice");
  options.for_client = true;
  const auto alice = http::make_certificate(authority, options).value();
  little.token = "";
  start(authority.certificate_pem);
  const Connection connection = connected(plugin({to_text(JsonObject{
      {"clientCertificateData", alice.certificate_pem}, {"clientKeyData", alice.key_pem}})}));
  const auto pod = run(connection.client->get(kinds::kPod, kPodB));
  EXPECT_TRUE(pod) << pod.error().message;

  const Connection anonymous = connected("");
  EXPECT_EQ(run(anonymous.client->get(kinds::kPod, kPodB)).error().reason, Reason::kTransport);
}

TEST_F(ConnectTest, CertificatesInFiles) {
  auto options = valid("alice");
  options.for_client = true;
  const auto alice = http::make_certificate(authority, options).value();
  little.token = "";
  start(authority.certificate_pem);
  write("alice.crt", alice.certificate_pem);
  write("alice.key", alice.key_pem);
  const Connection connection = connected("client-certificate: alice.crt, client-key: alice.key");
  const auto pod = run(connection.client->get(kinds::kPod, kPodB));
  EXPECT_TRUE(pod) << pod.error().message;
}

TEST_F(ConnectTest, AServerOfAnotherAuthorityIsNotTrusted) {
  const auto other = http::make_authority(valid("other")).value();
  const Connection good = connected("token: good");
  authority = other;
  const Connection connection = connected("token: good");
  const auto refused = run(connection.client->get(kinds::kPod, kPodB));
  EXPECT_EQ(refused.error().reason, Reason::kTransport);
  EXPECT_FALSE(refused.error().ambiguous);
  EXPECT_TRUE(little.asked.empty()) << "the token was not shown to a stranger";
}

TEST_F(ConnectTest, AFailingPluginSaysWhatItSaid) {
  write("plugin", "echo 'your session has ended; run: login' >&2; exit 1");
  const Connection connection = connected(
      fmt::format("exec: {{apiVersion: client.authentication.k8s.io/v1, command: sh, args: ['{}'], "
                  "interactiveMode: Never}}",
                  (folder / "plugin").string()));
  const auto refused = run(connection.client->get(kinds::kPod, kPodB));
  EXPECT_EQ(refused.error().message,
            fmt::format("{}:9:3: users[0]: credential plugin 'sh' ended with code 1: your session "
                        "has ended; run: login",
                        (folder / "config").string()));
  EXPECT_TRUE(little.asked.empty());
}

TEST_F(ConnectTest, ABrokenConfigIsAnErrorAtOnce) {
  const auto connection =
      connect(executor, AccessOptions{.kubeconfig = (folder / "none").string()});
  ASSERT_FALSE(connection);
  EXPECT_THAT(connection.error().message, HasSubstr("no such file"));
}

}  // namespace
}  // namespace grapnel::kube
