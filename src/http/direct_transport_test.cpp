#include "http/direct_transport.h"

#include <gtest/gtest.h>

#include <boost/asio/post.hpp>

#include "http/loopback_test.h"

namespace grapnel::http {
namespace {

struct DirectTransportTest : LoopTest {
  std::string seen;    // "GET /path?query", of the last request
  bool ended = false;  // of the last handler
  size_t written = 0;  // pieces that a handler has got rid of
  std::shared_ptr<DirectTransport> transport = std::make_shared<DirectTransport>(
      executor, [this](Exchange& exchange) { return answer(exchange); });

  Task<> answer(Exchange& exchange) {
    struct Ended {
      bool& ended;
      ~Ended() { ended = true; }
    } at_end{ended};
    const Request& request = exchange.request();
    seen = request.method + " " + request.target;
    if (request.target == "/nothing") co_return;
    if (request.target == "/defect") throw std::runtime_error("a defect");
    if (request.target == "/never") co_await exchange.closed();
    if (!request.target.starts_with("/stream")) {
      (void)co_await exchange.respond(
          {.status = 201, .headers = {{"A", "b"}}, .body = request.body});
      co_return;
    }
    (void)co_await exchange.begin({.status = 200, .headers = {}, .body = ""});
    const bool endless = request.target == "/stream/endless";
    for (int i = 0; i < 3 || endless; ++i) {
      if (!co_await exchange.write(std::string(endless ? 100'000 : 1, 'x'))) co_return;
      ++written;
    }
    if (request.target != "/stream/cut") (void)co_await exchange.finish();
  }

  Result<Response> send(std::string method, std::string path, Duration timeout = seconds(5)) {
    Result<Response> answer;
    run([](DirectTransport& t, Request request,
           Result<Response>& out) -> Task<> {
      out = co_await t.send(request);
    }(*transport,
                                  {.method = std::move(method),
                                   .target = "https://server:1" + std::move(path),
                                   .body = "text",
                                   .timeout = timeout},
                                  answer));
    return answer;
  }
  std::unique_ptr<BodyStream> open_endless() {
    Result<StreamResponse> opened;
    run([](DirectTransport& t, Result<StreamResponse>& out) -> Task<> {
      out = co_await t.open({.target = "http://server/stream/endless"});
      co_await system_clock().sleep(milliseconds(20));
    }(*transport, opened));
    EXPECT_TRUE(opened);
    return opened ? std::move(opened->body) : nullptr;
  }
};

TEST_F(DirectTransportTest, TheHandlerSeesThePathAndItsAnswerComesBack) {
  const auto answer = send("POST", "/a/b?c=d");
  ASSERT_TRUE(answer);
  EXPECT_EQ(seen, "POST /a/b?c=d");
  EXPECT_EQ(answer->status, 201);
  EXPECT_EQ(answer->headers.get("a"), "b");
  EXPECT_EQ(answer->body, "text");
}

TEST_F(DirectTransportTest, OthersRunBetweenOneRequestAndTheNext) {
  int turns = 0;
  auto other = spawn(executor, [](Executor on, int& n) -> Task<> {
    for (;; ++n) co_await boost::asio::post(on, boost::asio::use_awaitable);
  }(executor, turns));
  run([](DirectTransport& t, int& n) -> Task<> {
    for (int asked = 0; n < 3 && asked < 1000; ++asked) {
      (void)co_await t.send({.target = "http://server/a"});
    }
  }(*transport, turns));
  EXPECT_GE(turns, 3);
  other.cancel();
  run(other.join());
}

TEST_F(DirectTransportTest, AStreamIsReadToItsEndAndOneCutShortIsAnError) {
  EXPECT_EQ(send("GET", "/stream")->body, "xxx");
  EXPECT_EQ(send("GET", "/stream/cut").error().reason, Reason::kTransport);
}

TEST_F(DirectTransportTest, AHandlerThatAnswersNothingIsAnsweredFor) {
  EXPECT_EQ(send("GET", "/nothing")->status, 500);
  EXPECT_EQ(send("GET", "/defect")->status, 500);
}

TEST_F(DirectTransportTest, AnAnswerThatDoesNotComeIsATimeOut) {
  const auto answer = send("POST", "/never", milliseconds(10));
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().reason, Reason::kTimeout);
  EXPECT_TRUE(answer.error().ambiguous);
  run(transport->stop());
  EXPECT_TRUE(ended);
}

TEST_F(DirectTransportTest, ASlowReaderHoldsItsHandlerBackAndDroppingTheStreamEndsIt) {
  auto body = open_endless();
  EXPECT_GT(written, 5U);
  EXPECT_LT(written, 30U);
  EXPECT_FALSE(ended);
  body.reset();
  run(transport->stop());
  EXPECT_TRUE(ended);
}

TEST_F(DirectTransportTest, StoppingEndsWhatIsUnderWayAndRefusesTheRest) {
  const auto body = open_endless();
  run(transport->stop());
  EXPECT_TRUE(ended);
  EXPECT_EQ(send("POST", "/a").error().reason, Reason::kTransport);
  EXPECT_FALSE(send("POST", "/a").error().ambiguous);
}

}  // namespace
}  // namespace grapnel::http
