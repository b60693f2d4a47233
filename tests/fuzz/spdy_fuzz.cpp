// What a port-forwarding client sends: the first byte says how long pieces are.
#include "http/spdy.h"
#include "tests/fuzz/fuzz.h"

using namespace grapnel;

namespace {

// How many frames there are, and whether all of it could be read.
std::pair<size_t, bool> read(std::string_view text, size_t piece) {
  http::SpdyReader reader;
  size_t frames = 0;
  for (; !text.empty(); text.remove_prefix(std::min(piece, text.size()))) {
    reader.feed(text.substr(0, piece));
    for (;;) {
      const auto frame = reader.next();
      if (!frame) return {frames, false};
      if (!*frame) break;
      ++frames;
    }
  }
  return {frames, true};
}

}  // namespace

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const std::string_view text = fuzz::text_of(data + 1, size - 1);
  fuzz::require(read(text, size) == read(text, 1 + data[0] % 64), "frames do not depend on pieces");
  return 0;
}
