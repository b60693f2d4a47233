#include "kube/exec_plugin.h"

#include <gmock/gmock.h>

#include "base/strings.h"
#include "kube/fake_test.h"

namespace grapnel::kube {
namespace {

using testing::HasSubstr;

constexpr std::string_view kV1 = "client.authentication.k8s.io/v1";

std::string answer_with(std::string_view status) {
  return fmt::format(R"({{"apiVersion":"{}","kind":"ExecCredential","status":{}}})", kV1, status);
}

struct ExecPluginTest : LoopTest {
  ManualClock clock;
  int runs = 0;
  Command last;
  Result<Finished> next = Finished{.output = answer_with(R"({"token":"t1"})")};
  PluginOptions options{.plugin = {.api_version = std::string(kV1),
                                   .command = "login",
                                   .arguments = {"--fast"},
                                   .environment = {{"REGION", "eu"}},
                                   .install_hint = "brew install login\n",
                                   .interactive = ExecPlugin::Interactive::kIfAvailable},
                        .cluster = JsonObject{{"server", "https://s"}},
                        .at = "config:3:1: users[0]",
                        .clock = &clock,
                        .run = [this](Command command) { return fake(std::move(command)); }};

  Duration length = milliseconds(20);  // of a run

  Task<Result<Finished>> fake(Command command) {
    ++runs;
    last = std::move(command);
    co_await system_clock().sleep(length);
    co_return next;
  }
  std::unique_ptr<TokenSource> source() { return token_from_plugin(executor, options); }
};

TEST_F(ExecPluginTest, RunsAsTheKubeconfigSaysAndKeepsTheToken) {
  const auto tokens = source();
  EXPECT_EQ(run(tokens->token()).value(), "t1");
  EXPECT_EQ(run(tokens->token()).value(), "t1");
  EXPECT_EQ(runs, 1);
  EXPECT_THAT(last.arguments, testing::ElementsAre("login", "--fast"));
  EXPECT_EQ(last.environment[0], (std::pair<std::string, std::string>("REGION", "eu")));
  EXPECT_EQ(last.environment[1].first, "KUBERNETES_EXEC_INFO");
  EXPECT_EQ(last.environment[1].second,
            R"({"apiVersion":"client.authentication.k8s.io/v1","kind":"ExecCredential",)"
            R"("spec":{"interactive":false}})");
  EXPECT_FALSE(last.share_input);
}

TEST_F(ExecPluginTest, TellsOfTheClusterAndOfATerminalWhereWanted) {
  options.plugin.provide_cluster_info = true;
  options.terminal = true;
  run(source()->token()).value();
  EXPECT_THAT(last.environment[1].second,
              HasSubstr(R"("spec":{"interactive":true,"cluster":{"server":"https://s"}})"));
  EXPECT_TRUE(last.share_input);
  options.plugin.interactive = ExecPlugin::Interactive::kNever;
  run(source()->token()).value();
  EXPECT_FALSE(last.share_input);
}

TEST_F(ExecPluginTest, APluginThatNeedsAPersonIsNotRunWithoutOne) {
  options.plugin.interactive = ExecPlugin::Interactive::kAlways;
  EXPECT_THAT(run(source()->token()).error().message, HasSubstr("is not a terminal"));
  EXPECT_EQ(runs, 0);
}

TEST_F(ExecPluginTest, RunsAgainWhenTheTokenHasExpired) {
  next =
      Finished{.output = answer_with(fmt::format(R"({{"token":"t1","expirationTimestamp":"{}"}})",
                                                 format_time(clock.now() + minutes(10))))};
  const auto tokens = source();
  run(tokens->token()).value();
  clock.advance(minutes(9));
  run(tokens->token()).value();
  EXPECT_EQ(runs, 1);
  clock.advance(minutes(1));
  run(tokens->token()).value();
  EXPECT_EQ(runs, 2);
}

TEST_F(ExecPluginTest, RunsAgainForTheRefusedTokenOnly) {
  const auto tokens = source();
  run(tokens->token()).value();
  next = Finished{.output = answer_with(R"({"token":"t2"})")};
  EXPECT_TRUE(tokens->renew("t1"));
  EXPECT_EQ(run(tokens->token()).value(), "t2");
  EXPECT_TRUE(tokens->renew("t1"));  // a request that was sent before
  EXPECT_EQ(run(tokens->token()).value(), "t2");
  EXPECT_EQ(runs, 2);
}

TEST_F(ExecPluginTest, RunsOnceForAllWhoAskAtTheSameTime) {
  const auto tokens = source();
  const auto ask_all = [](TokenSource& source) -> Task<int> {
    int good = 0;
    std::vector<Task<>> tasks;
    for (int i = 0; i < 10; ++i) {
      tasks.push_back([](TokenSource& s, int& count) -> Task<> {
        if (co_await s.token()) ++count;
      }(source, good));
    }
    co_await all(std::move(tasks));
    co_return good;
  };
  EXPECT_EQ(run(ask_all(*tokens)), 10);
  EXPECT_EQ(runs, 1);

  tokens->renew("t1");
  next = Finished{.exit_code = 1, .errors = "session expired"};
  EXPECT_EQ(run(ask_all(*tokens)), 0);
  EXPECT_EQ(runs, 2) << "a failure is shared too";
  next = Finished{.output = answer_with(R"({"token":"t3"})")};
  EXPECT_EQ(run(ask_all(*tokens)), 10);
  EXPECT_EQ(runs, 3);
}

TEST_F(ExecPluginTest, WhenTheRunnerIsCancelledAnotherTakesOver) {
  length = seconds(1);  // sure to be under way still when it is cancelled, on a busy machine too
  const auto tokens = source();
  Result<std::string> second = fail(Reason::kUnknown, "none");
  auto ask = [](TokenSource& s, Result<std::string>* out) -> Task<> {
    auto token = co_await s.token();
    if (out != nullptr) *out = token;
  };
  auto first = spawn(executor, ask(*tokens, nullptr));
  auto other = spawn(executor, ask(*tokens, &second));
  loop.run_for(milliseconds(5));
  EXPECT_EQ(runs, 1);
  first.cancel();
  loop.restart();
  loop.run_for(seconds(10));
  EXPECT_EQ(second.value(), "t1");
  EXPECT_EQ(runs, 2);
}

TEST_F(ExecPluginTest, GivesCertificatesOn) {
  next =
      Finished{.output = answer_with(R"({"clientCertificateData":"CERT","clientKeyData":"KEY"})")};
  std::string given;
  options.on_certificate = [&given](const PluginCredential& c) {
    given = c.certificate_pem + "/" + c.key_pem;
  };
  EXPECT_EQ(run(source()->token()).value(), "");
  EXPECT_EQ(given, "CERT/KEY");
}

TEST_F(ExecPluginTest, FailuresNameTheEntryTheProgramAndTheCure) {
  next = fail(Reason::kSystem, "cannot run 'login': No such file or directory");
  EXPECT_EQ(run(source()->token()).error().message,
            "config:3:1: users[0]: credential plugin 'login' failed: cannot run 'login': No such "
            "file or directory\nbrew install login");
  next = Finished{.exit_code = 2, .output = "x", .errors = "please log in\n"};
  const auto refused = run(source()->token());
  EXPECT_EQ(refused.error().reason, Reason::kUnauthorized);
  EXPECT_EQ(refused.error().message,
            "config:3:1: users[0]: credential plugin 'login' ended with code 2: please log in");
  next = Finished{.exit_code = 1, .errors = std::string(100000, 'x')};
  EXPECT_LT(run(source()->token()).error().message.size(), 1000U);
}

TEST_F(ExecPluginTest, AnswersThatAreWrong) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"", "printed no JSON"},
      {"Please visit https://…", "printed no JSON"},
      {"[]", "printed the kind ''"},
      {R"({"kind":"Pod","apiVersion":"v1"})", "printed the kind 'Pod' instead of ExecCredential"},
      {R"({"kind":"ExecCredential","apiVersion":"client.authentication.k8s.io/v1beta1"})",
       "answered in apiVersion 'client.authentication.k8s.io/v1beta1', the kubeconfig asks for"},
      {answer_with("null"), "printed no status"},
      {answer_with("{}"), "gave neither a token nor a certificate"},
      {answer_with(R"({"token":7})"), "gave neither a token nor a certificate"},
      {answer_with(R"({"clientCertificateData":"x"})"), "without its key"},
      {answer_with(R"({"token":"t","clientKeyData":"x"})"), "without its key"},
      {answer_with(R"({"token":"a\r\nX: y"})"), "a token with a line break"},
      {answer_with(R"({"token":"t","expirationTimestamp":"soon"})"), "is no time: 'soon'"},
  };
  for (const auto& [text, message] : cases) {
    const auto credential = decode_plugin_answer(text, kV1);
    ASSERT_FALSE(credential) << text;
    EXPECT_THAT(credential.error().message, HasSubstr(message));
  }
}

TEST_F(ExecPluginTest, RunsARealProgram) {
  options.run = &run_program;
  options.plugin.command = "sh";
  options.plugin.arguments = {
      "-c", R"(printf '{"apiVersion":"client.authentication.k8s.io/v1","kind":"ExecCredential",)"
            R"("status":{"token":"%s-%s"}}' "$REGION" "${#KUBERNETES_EXEC_INFO}")"};
  EXPECT_THAT(run(source()->token()).value(), testing::StartsWith("eu-1"));
  options.plugin.command = "grapnel-no-such-plugin";
  EXPECT_THAT(run(source()->token()).error().message, HasSubstr("brew install login"));
}

}  // namespace
}  // namespace grapnel::kube
