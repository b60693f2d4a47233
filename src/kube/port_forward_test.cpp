#include "kube/port_forward.h"

#include <gtest/gtest.h>

#include "kube/fake_test.h"
#include "kube/fake_websocket_test.h"

namespace grapnel::kube {
namespace {

struct PortForwardTest : LoopTest {
  PortForwardTest() {
    auto made = std::make_unique<FakeWebSocket>(executor);
    server = made.get();
    forward = std::make_unique<PortForward>(executor, std::move(made));
    running = spawn(executor, [](PortForward& f, std::optional<Error>& out) -> Task<> {
      out = co_await f.run();
    }(*forward, why));
  }
  ~PortForwardTest() override {
    running.cancel();
    run([](Spawned& r) -> Task<bool> {
      co_await r.join();
      co_return true;
    }(running));
  }

  // What the server has got, frame by frame.
  std::vector<http::SpdyFrame> frames() {
    std::vector<http::SpdyFrame> out;
    for (const auto& message : server->received) reader.feed(message);
    server->received.clear();
    for (auto frame = reader.next(); frame && *frame; frame = reader.next()) out.push_back(**frame);
    return out;
  }
  void send(const std::string& frames) { server->send(frames); }

  FakeWebSocket* server = nullptr;
  std::unique_ptr<PortForward> forward;
  http::SpdyReader reader;
  http::SpdyWriter writer;
  std::optional<Error> why;
  Spawned running;
};

TEST_F(PortForwardTest, AConnectionIsTwoStreams) {
  const auto connection = run(forward->connect(8080)).value();
  const auto opened = frames();
  ASSERT_EQ(opened.size(), 3U);
  const auto& error = std::get<http::SpdyOpened>(opened[0]);
  const auto& data = std::get<http::SpdyOpened>(opened[2]);
  EXPECT_EQ(error.headers.at("streamtype"), "error");
  EXPECT_TRUE(std::get<http::SpdyData>(opened[1]).finished) << "we send nothing on it";
  EXPECT_EQ(data.headers.at("streamtype"), "data");
  EXPECT_EQ(data.headers.at("port"), "8080");
  EXPECT_EQ(error.headers.at("requestid"), data.headers.at("requestid"));
  EXPECT_LT(error.stream, data.stream);
}

TEST_F(PortForwardTest, ConnectionsAreKeptApart) {
  const auto first = run(forward->connect(1)).value();
  const auto second = run(forward->connect(2)).value();
  send(writer.reply(1) + writer.reply(3) + writer.data(7, "two") + writer.data(3, "one"));
  send(writer.data(5, "", true) + writer.data(7, "", true));
  EXPECT_EQ(*run(first->read()), "one");
  EXPECT_EQ(*run(second->read()), "two");
  EXPECT_EQ(*run(second->read()), "") << "the end";
  frames();
  EXPECT_TRUE(run(second->write("x")));
  EXPECT_TRUE(run(second->finish_writing()));
  const auto sent = frames();
  ASSERT_EQ(sent.size(), 2U);
  EXPECT_EQ(std::get<http::SpdyData>(sent[0]).stream, 7U);
  EXPECT_TRUE(std::get<http::SpdyData>(sent[1]).finished);
}

TEST_F(PortForwardTest, AnErrorComesAfterTheBytes) {
  const auto connection = run(forward->connect(1)).value();
  send(writer.data(3, "partly") + writer.data(3, "", true) +
       writer.data(1, "nobody listens", true));
  EXPECT_EQ(*run(connection->read()), "partly");
  EXPECT_EQ(run(connection->read()).error().message, "nobody listens");
}

TEST_F(PortForwardTest, AResetAndALostServerAreErrors) {
  const auto first = run(forward->connect(1)).value();
  const auto second = run(forward->connect(2)).value();
  send(writer.reset(3));
  EXPECT_FALSE(run(first->read()));
  server->say_goodbye();
  EXPECT_FALSE(run(second->read()));
  EXPECT_TRUE(why);
}

TEST_F(PortForwardTest, LongPiecesAreCut) {
  const auto connection = run(forward->connect(1)).value();
  frames();
  const std::string all(200'000, 'x');
  EXPECT_TRUE(run(connection->write(all)));
  std::string got;
  for (const auto& frame : frames()) got += std::get<http::SpdyData>(frame).data;
  EXPECT_EQ(got, all);
}

// Else a slow reader would let the program's memory grow without end.
TEST_F(PortForwardTest, AReaderThatIsSlowHoldsTheServerBack) {
  const auto connection = run(forward->connect(1)).value();
  const std::string piece(700'000, 'x');
  for (int i = 0; i < 3; ++i) send(writer.data(3, piece));
  send(writer.data(1, "", true) + writer.data(3, "", true));
  size_t got = 0;
  for (;;) {
    const auto next = run(connection->read()).value();
    if (next.empty()) break;
    got += next.size();
  }
  EXPECT_EQ(got, 3 * piece.size());
}

TEST_F(PortForwardTest, WhatComesForAConnectionThatIsGoneIsDropped) {
  {
    const auto connection = run(forward->connect(1)).value();
    for (int i = 0; i < 3; ++i) send(writer.data(3, std::string(700'000, 'x')));
  }
  const auto next = run(forward->connect(1)).value();
  send(writer.data(3, "late") + writer.data(7, "here"));
  EXPECT_EQ(run(next->read()).value(), "here");
}

}  // namespace
}  // namespace grapnel::kube
