#include "runtime/webhook_certificate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/strings.h"
#include "runtime/scripted_transport_test.h"
#include "tests/simulation/virtual_loop.h"

namespace grapnel::runtime {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;

const Time kNow{seconds(1800000000)};
constexpr Duration kLife = std::chrono::days(90);

WebhookCertificate make(const WebhookCertificate* before = nullptr, Time now = kNow) {
  auto made = make_webhook_certificate({"grapnel.test.svc", "127.0.0.1"}, before, kLife, now);
  EXPECT_TRUE(made);
  return *made;
}

size_t count(std::string_view text, std::string_view part) {
  size_t n = 0;
  for (size_t at = text.find(part); at != text.npos; at = text.find(part, at + 1)) ++n;
  return n;
}

TEST(WebhookCertificate, IsDueAfterTwoThirdsOfItsLife) {
  const auto certificate = make();
  EXPECT_FALSE(is_due(certificate, kLife, kNow));
  EXPECT_FALSE(is_due(certificate, kLife, kNow + kLife / 3 * 2 - minutes(1)));
  EXPECT_TRUE(is_due(certificate, kLife, kNow + kLife / 3 * 2 + minutes(1)));
  EXPECT_TRUE(is_due({.server = {"no certificate", ""}, .authorities = ""}, kLife, kNow));
}

TEST(WebhookCertificate, TheAuthorityBeforeIsStillTrusted) {
  const auto first = make();
  EXPECT_EQ(count(first.authorities, "BEGIN CERTIFICATE"), 1U);
  const auto second = make(&first);
  const auto third = make(&second);
  EXPECT_EQ(count(third.authorities, "BEGIN CERTIFICATE"), 2U);
  EXPECT_THAT(second.authorities, HasSubstr(first.authorities));
  EXPECT_THAT(third.authorities, testing::Not(HasSubstr(first.authorities)));
}

TEST(WebhookCertificate, ReadsBackFromItsSecret) {
  const auto certificate = make();
  const auto read = certificate_in(secret_of(certificate, "ns", "s"));
  ASSERT_TRUE(read);
  EXPECT_EQ(read->server.key_pem, certificate.server.key_pem);
  EXPECT_EQ(read->authorities, certificate.authorities);
  EXPECT_FALSE(certificate_in(JsonObject{{"data", JsonObject{{"tls.crt", "%%%"}}}}));
}

struct Keeper : testing::Test {
  simulation::VirtualLoop loop;
  std::shared_ptr<ScriptedTransport> server = std::make_shared<ScriptedTransport>(loop.clock);
  kube::Client client{server, nullptr, {.server = "https://server", .clock = &loop.clock}};
  std::vector<std::string> served;
  WebhookCertificateKeeper keeper{
      client, loop.clock, {.ns = "ns", .names = {"localhost"}}, [this](const auto& certificate) {
        served.push_back(certificate.certificate_pem);
        return Result<>{};
      }};

  bool look() {
    std::optional<bool> ended;
    auto task =
        spawn(loop.executor(), [](WebhookCertificateKeeper& k, std::optional<bool>& out) -> Task<> {
          out = (co_await k.look()).has_value();
        }(keeper, ended));
    loop.run_until([&] { return ended.has_value(); }, minutes(5));
    return ended.value_or(false);
  }
  static std::string hook(std::string bundle) {
    return R"({"webhooks":[{"name":"h","clientConfig":{"caBundle":")" + bundle + R"("}}]})";
  }
};

TEST_F(Keeper, TellsTheApiServerBeforeItServes) {
  server->refuse(404, "NotFound");
  server->answer("{}");
  server->answer(hook(""));
  server->refuse(500, "InternalError");
  EXPECT_FALSE(look());
  EXPECT_TRUE(served.empty()) << "the API server does not trust it yet";
  ASSERT_EQ(server->asked.size(), 4U);
  EXPECT_THAT(server->asked[1], StartsWith("POST /api/v1/namespaces/ns/secrets"));
  EXPECT_THAT(server->asked[3], StartsWith("PATCH"));
}

TEST_F(Keeper, ServesWhatAnotherReplicaMade) {
  const auto certificate = make(nullptr, loop.clock.now());
  server->answer(to_text(secret_of(certificate, "ns", "s")));
  const auto bundle = base64_encode(certificate.authorities);
  server->answer(hook(bundle));
  server->refuse(404, "NotFound");
  EXPECT_TRUE(look());
  EXPECT_THAT(served, ElementsAre(certificate.server.certificate_pem));
  EXPECT_EQ(server->asked.size(), 3U) << "nothing to write";
}

TEST_F(Keeper, RenewsOverTheVersionItRead) {
  const auto old = make(nullptr, loop.clock.now() - kLife);
  Json secret = secret_of(old, "ns", "s");
  secret.at("metadata").as_object()["resourceVersion"] = "7";
  server->answer(to_text(secret));
  server->refuse(409, "Conflict");
  EXPECT_FALSE(look());
  EXPECT_THAT(server->asked.back(), HasSubstr(R"("resourceVersion":"7")"));
  EXPECT_TRUE(served.empty());
}

}  // namespace
}  // namespace grapnel::runtime
