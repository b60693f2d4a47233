// Lists and watch frames: the first byte says how long chunks are; whole or in chunks, the result
// is the same.
#include <string>
#include <vector>

#include "document/line_splitter.h"
#include "document/list_splitter.h"
#include "tests/fuzz/fuzz.h"

using namespace grapnel;

namespace {

std::vector<std::string> split_list(std::string_view text, size_t chunk) {
  std::vector<std::string> parts;
  ListSplitter splitter(
      [&](std::string_view item) {
        parts.emplace_back(item);
        return Result<>();
      },
      {.max_item = 4096, .max_skeleton = 4096});
  for (; !text.empty(); text.remove_prefix(std::min(chunk, text.size()))) {
    if (!splitter.feed(text.substr(0, chunk))) break;
  }
  const auto skeleton = splitter.finish();
  // An item that is too long is found sooner in small chunks; what counts is that it is found.
  if (!skeleton) return {"error"};
  parts.push_back(to_text(*skeleton));
  return parts;
}

std::vector<std::string> split_lines(std::string_view text, size_t chunk) {
  std::vector<std::string> lines;
  LineSplitter splitter(4096);
  for (; !text.empty(); text.remove_prefix(std::min(chunk, text.size()))) {
    const auto fed = splitter.feed(text.substr(0, chunk), [&](std::string_view line) {
      lines.emplace_back(line);
      return Result<>();
    });
    if (!fed) return {"error"};
  }
  if (!splitter.finish()) lines.emplace_back("cut off");
  return lines;
}

}  // namespace

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const size_t chunk = 1 + data[0] % 64;
  const std::string_view text = fuzz::text_of(data + 1, size - 1);
  fuzz::require(split_list(text, size) == split_list(text, chunk), "lists do not depend on chunks");
  fuzz::require(split_lines(text, size) == split_lines(text, chunk),
                "lines do not depend on chunks");
  return 0;
}
