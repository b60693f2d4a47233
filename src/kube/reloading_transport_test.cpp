#include "kube/reloading_transport.h"

#include <gmock/gmock.h>

#include <fstream>

#include "kube/fake_test.h"

namespace grapnel::kube {
namespace {

using testing::ElementsAre;

struct ReloadingTransportTest : LoopTest {
  ManualClock clock;
  std::string certificate = unique_folder().string() + ".crt";
  std::string key = unique_folder().string() + ".key";
  std::vector<std::string> made;

  ~ReloadingTransportTest() override {
    std::remove(certificate.c_str());
    std::remove(key.c_str());
  }
  static void write(const std::string& path, std::string_view text) {
    std::ofstream(path, std::ios::trunc) << text;
  }
  std::unique_ptr<ReloadingTransport> make(ReloadingTransport::Files files) {
    return std::make_unique<ReloadingTransport>(
        http::ClientOptions{.client_certificate_pem = "c1", .client_key_pem = "k1"},
        std::move(files),
        [this](const http::ClientOptions& options) {
          made.push_back(options.client_certificate_pem + options.client_key_pem);
          auto transport = std::make_unique<FakeTransport>();
          transport->answers.push_back(http::Response{.body = made.back()});
          return transport;
        },
        clock);
  }
};

TEST_F(ReloadingTransportTest, UsesNewCertificatesWithinAMinute) {
  write(certificate, "c1");
  write(key, "k1");
  const auto transport = make({.certificate = certificate, .key = key});
  EXPECT_EQ(run(transport->send({})).value().body, "c1k1");
  write(certificate, "c2");
  write(key, "k2");
  EXPECT_EQ(run(transport->send({})).value().body, "c1k1");
  clock.advance(minutes(1));
  EXPECT_EQ(run(transport->send({})).value().body, "c2k2");
  clock.advance(minutes(1));
  EXPECT_EQ(run(transport->send({})).value().body, "c2k2");
  EXPECT_THAT(made, ElementsAre("c1k1", "c2k2")) << "nothing new without a change";
}

TEST_F(ReloadingTransportTest, KeepsBothWhenOneCannotBeRead) {
  const auto transport = make({.certificate = certificate, .key = key});
  write(certificate, "c2");
  clock.advance(minutes(1));
  EXPECT_EQ(run(transport->send({})).value().body, "c1k1");
  EXPECT_EQ(transport->options().client_certificate_pem, "c1");
}

TEST_F(ReloadingTransportTest, AStreamOutlivesItsTransport) {
  auto transport = make({});
  auto stream = run(transport->open({})).value();
  transport->set_certificate("c3", "k3");
  transport->set_certificate("c3", "k3");
  EXPECT_EQ(run(transport->send({})).value().body, "c3k3");
  EXPECT_THAT(made, ElementsAre("c1k1", "c3k3"));
  transport.reset();
  EXPECT_EQ(run(stream.body->read()).value(), "c1k1");
}

}  // namespace
}  // namespace grapnel::kube
