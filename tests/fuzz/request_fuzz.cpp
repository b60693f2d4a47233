// HTTP requests as they come to the server: the first byte says how long chunks are.
#include <optional>
#include <string>

#include "http/request_parser.h"
#include "tests/fuzz/fuzz.h"

using namespace grapnel;

namespace {

// The request, or nothing when it is refused or is not whole: which of the two a broken one is may
// depend on where it was cut.
std::optional<std::string> parse(std::string_view text, size_t chunk) {
  using Progress = http::RequestParser::Progress;
  http::RequestParser parser(1 << 16);
  std::string buffer;
  bool in_body = false;
  for (; !text.empty(); text.remove_prefix(std::min(chunk, text.size()))) {
    buffer += text.substr(0, chunk);
    auto progress = Progress::kDone;
    if (!in_body) {
      progress = parser.parse_header(buffer);
      in_body = progress == Progress::kDone;
    }
    if (in_body) progress = parser.parse_body(buffer);
    if (progress == Progress::kRefused) return std::nullopt;
    if (progress == Progress::kDone) {
      const auto request = parser.take_request();
      return request.method + " " + request.target + " " + request.body;
    }
  }
  return std::nullopt;
}

}  // namespace

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const std::string_view text = fuzz::text_of(data + 1, size - 1);
  const auto whole = parse(text, size);
  fuzz::require(whole == parse(text, 1 + data[0] % 64), "a request does not depend on chunks");
  return 0;
}
