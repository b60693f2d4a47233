#include "kube/remote_command.h"

#include <gtest/gtest.h>

#include "kube/fake_test.h"
#include "kube/fake_websocket_test.h"

namespace grapnel::kube {
namespace {

using namespace std::string_literals;

struct RemoteCommandTest : LoopTest {
  RemoteCommandTest() {
    auto made = std::make_unique<FakeWebSocket>(executor);
    server = made.get();
    command = std::make_unique<RemoteCommand>(std::move(made));
  }
  FakeWebSocket* server = nullptr;
  std::unique_ptr<RemoteCommand> command;
};

TEST_F(RemoteCommandTest, StreamsAreToldApartAndEmptyMessagesPassedOver) {
  for (const auto& message : {"\1"s, "\2"s, "\3"s.substr(1), "\1out"s, "\2err"s}) {
    server->send(message);
  }
  server->send("\3"s + R"({"status":"Success"})");
  EXPECT_EQ(run(command->read())->output, "out");
  EXPECT_EQ(run(command->read())->errors, "err");
  EXPECT_EQ(run(command->read())->exit_code, 0);
}

TEST_F(RemoteCommandTest, WhatIsSentHasItsChannelBeforeIt) {
  EXPECT_TRUE(run(command->write_input("a\nb")));
  EXPECT_TRUE(run(command->resize(80, 25)));
  EXPECT_TRUE(run(command->close_input()));
  EXPECT_EQ(server->received, (std::vector<std::string>{
                                  "\0a\nb"s, "\4"s + R"({"Width":80,"Height":25})", "\xff\0"s}));
}

TEST_F(RemoteCommandTest, AnEndWithoutAStatusIsAnError) {
  server->say_goodbye();
  EXPECT_EQ(run(command->read()).error().reason, Reason::kTransport);
}

TEST(ExitCode, IsReadFromTheStatus) {
  EXPECT_EQ(*exit_code_of(R"({"status":"Success","metadata":{}})"), 0);
  EXPECT_EQ(*exit_code_of(R"({"status":"Failure","reason":"NonZeroExitCode","details":{"causes":[)"
                          R"({"reason":"Other","message":"5"},)"
                          R"({"reason":"ExitCode","message":"9"}]}})"),
            9);
}

TEST(ExitCode, WhatIsNoExitCodeIsAnErrorWithTheServersWords) {
  for (const auto& [status, words] : std::vector<std::pair<std::string, std::string>>{
           {R"({"status":"Failure","reason":"InternalError","message":"no such program"})",
            "no such program"},
           {R"({"status":"Failure","reason":"NonZeroExitCode","message":"odd","details":{"causes":)"
            R"([{"reason":"ExitCode","message":"9x"}]}})",
            "odd"},
           {R"({"status":"Failure"})", "could not be run"},
           {"error", "no Status: error"}}) {
    const auto code = exit_code_of(status);
    ASSERT_FALSE(code) << status;
    EXPECT_NE(code.error().message.find(words), std::string::npos) << code.error().message;
  }
}

}  // namespace
}  // namespace grapnel::kube
