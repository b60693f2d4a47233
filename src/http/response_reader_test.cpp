#include "http/response_reader.h"

#include <gmock/gmock.h>

#include "http/loopback_test.h"

namespace grapnel::http {
namespace {

// Says its text in pieces, then ends.
class Said final : public ByteStream {
 public:
  Said(std::string text, size_t piece) : text_(std::move(text)), piece_(piece) {}
  Task<Result<std::string>> read() override {
    std::string next = text_.substr(0, piece_);
    text_.erase(0, next.size());
    co_return next;
  }
  Task<Result<>> write(std::string_view) override { co_return Result<>(); }
  Task<> close() override { co_return; }

 private:
  std::string text_;
  size_t piece_;
};

struct Case {
  std::string name;
  std::string said;
  std::string read;  // status and body, or the error
  std::string method = "GET";
};

Task<> read_all(Said& stream, std::string method, std::string& out) {
  ResponseReader reader(stream, method);
  const auto head = co_await reader.read_head();
  if (!head) {
    out = head.error().message;
    co_return;
  }
  out = fmt::format("{} ", head->status);
  if (head->status == 101) {
    out += reader.take_rest();
    co_return;
  }
  for (;;) {
    const auto piece = co_await reader.read_body();
    if (!piece) {
      out += "| " + piece.error().message;
      co_return;
    }
    if (piece->empty()) co_return;
    out += *piece;
  }
}

struct ReadsResponse : LoopTest, testing::WithParamInterface<Case> {};

TEST_P(ReadsResponse, InAnyPieces) {
  const Case& c = GetParam();
  for (const size_t piece : {1UL, 2UL, 7UL, 10000UL}) {
    if (piece < 10000 && c.said.starts_with("HTTP/1.1 101")) continue;  // the rest comes later
    Said stream(c.said, piece);
    std::string out;
    run(read_all(stream, c.method, out));
    EXPECT_EQ(out, c.read) << "in pieces of " << piece;
  }
}

INSTANTIATE_TEST_SUITE_P(
    Table, ReadsResponse,
    testing::Values(
        Case{"WithALength", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello more", "200 hello"},
        Case{"WithoutABody", "HTTP/1.1 204 No Content\r\n\r\n", "204 "},
        Case{"UntilTheEnd", "HTTP/1.0 200 OK\r\n\r\nhello", "200 hello"},
        Case{"InChunks",
             "HTTP/1.1 404 No\r\nTransfer-Encoding: "
             "chunked\r\n\r\n5\r\nhello\r\n1\r\n!\r\n0\r\n\r\n",
             "404 hello!"},
        Case{"OfAHead", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n", "200 ", "HEAD"},
        Case{"AfterInterimOnes",
             "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx", "200 x"},
        Case{"ThatSwitches", "HTTP/1.1 101 Switching\r\nUpgrade: x\r\n\r\nbytes", "101 bytes"},
        Case{"CutShort", "HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\nhello",
             "200 hello| the HTTP response ends in the middle"},
        Case{"CutInTheHead", "HTTP/1.1 200 OK\r\nContent-", "the HTTP response ends in the middle"},
        Case{"Nothing", "", "the HTTP response ends in the middle"},
        Case{"SomethingElse", "SSH-2.0-OpenSSH_9.6 on port 22\r\n\r\n",
             "not an HTTP response: bad version"}),
    [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace grapnel::http
