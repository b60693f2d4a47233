#include "document/line_splitter.h"

namespace grapnel {
namespace {

// One large line must not hold on to its memory forever.
constexpr size_t kKeep = size_t{1} << 20;

}  // namespace

Result<> LineSplitter::feed(std::string_view chunk,
                            absl::FunctionRef<Result<>(std::string_view)> f) {
  while (!chunk.empty()) {
    const size_t end = chunk.find('\n');
    const std::string_view part = chunk.substr(0, end);
    if (begin_.size() + part.size() > max_line_) {
      begin_.clear();
      return fail(Reason::kDecode, "a line is longer than {} bytes", max_line_);
    }
    if (end == std::string_view::npos) {
      begin_ += part;
      return {};
    }
    chunk.remove_prefix(end + 1);
    std::string_view line = part;
    if (!begin_.empty()) line = begin_ += part;
    if (line.ends_with('\r')) line.remove_suffix(1);
    const auto result = line.empty() ? Result<>() : f(line);
    begin_.clear();
    if (begin_.capacity() > kKeep) begin_.shrink_to_fit();
    if (!result) return result;
  }
  return {};
}

Result<> LineSplitter::finish() const {
  if (begin_.empty()) return {};
  return fail(Reason::kDecode, "the stream ends within a line, after {} bytes of it",
              begin_.size());
}

}  // namespace grapnel
