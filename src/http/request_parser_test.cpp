#include "http/request_parser.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <optional>

namespace grapnel::http {
namespace {

struct Outcome {
  int refusal = 0;  // 0: none
  bool whole = false;
  std::string method;
  std::string target;
  std::string body;
  std::string rest;
  bool operator==(const Outcome&) const = default;
};

// Hands over the bytes piece by piece, as they might come from a network.
Outcome parse_in_pieces(const std::string& bytes, const std::vector<size_t>& cuts) {
  RequestParser parser(1000);
  std::string buffer;
  size_t given = 0;
  size_t next = 0;
  bool in_body = false;
  while (true) {
    const auto progress = in_body ? parser.parse_body(buffer) : parser.parse_header(buffer);
    if (progress == RequestParser::Progress::kRefused) return {.refusal = parser.refusal()};
    if (progress == RequestParser::Progress::kDone && in_body) break;
    if (progress == RequestParser::Progress::kDone) {
      in_body = true;
      continue;
    }
    if (given == bytes.size()) return {};
    const size_t size = cuts.empty() ? bytes.size() : 1 + cuts[next++ % cuts.size()] % 20;
    buffer += bytes.substr(given, size);
    given = std::min(bytes.size(), given + size);
  }
  const Request request = parser.take_request();
  return {.whole = true,
          .method = request.method,
          .target = request.target,
          .body = request.body,
          .rest = buffer + bytes.substr(given)};
}

const std::vector<std::string>& samples() {
  static const std::vector<std::string> all = {
      "GET /a?b=c HTTP/1.1\r\nHost: x\r\n\r\n",
      "POST /p HTTP/1.1\r\nHost: x\r\nContent-Length: 11\r\n\r\nhello worldGET / HTTP/1.1\r\n",
      "PUT /p HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
      "5;a=b\r\nhello\r\n1\r\n!\r\n0\r\nTrailer: t\r\n\r\nrest",
      "POST /p HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n",
      "POST /p HTTP/1.1\r\nHost: x\r\nContent-Length: 1001\r\n\r\n",
      "GET / HTTP/1.1\r\nbroken\r\n\r\n",
      "PUT /p HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
  };
  return all;
}

TEST(RequestParser, ReadsWhatIsWhole) {
  EXPECT_EQ(parse_in_pieces(samples()[1], {}), (Outcome{.whole = true,
                                                        .method = "POST",
                                                        .target = "/p",
                                                        .body = "hello world",
                                                        .rest = "GET / HTTP/1.1\r\n"}));
  EXPECT_EQ(
      parse_in_pieces(samples()[2], {}),
      (Outcome{.whole = true, .method = "PUT", .target = "/p", .body = "hello!", .rest = "rest"}));
  EXPECT_EQ(parse_in_pieces(samples()[4], {}), (Outcome{.refusal = 413}));
  const std::vector<size_t> bytewise(1, 0);
  EXPECT_EQ(parse_in_pieces(samples()[6], bytewise),
            (Outcome{.whole = true, .method = "PUT", .target = "/p"}));
}

RC_GTEST_PROP(RequestParser, CutsMakeNoDifference, (const std::vector<size_t>& cuts)) {
  const std::string& sample = samples()[*rc::gen::inRange<size_t>(0, samples().size())];
  RC_ASSERT(parse_in_pieces(sample, cuts) == parse_in_pieces(sample, {}));
}

RC_GTEST_PROP(RequestParser, DamagedBytesAreReadOrRefused, (size_t where, char byte)) {
  std::string sample = samples()[*rc::gen::inRange<size_t>(0, samples().size())];
  sample[where % sample.size()] = byte;
  const Outcome got = parse_in_pieces(sample, {});
  RC_ASSERT(got.refusal == 0 || (got.refusal >= 400 && got.refusal < 600));
}

}  // namespace
}  // namespace grapnel::http
