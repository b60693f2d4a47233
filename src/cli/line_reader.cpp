#include "cli/line_reader.h"

namespace grapnel::cli {

Task<Result<std::optional<std::string>>> LineReader::next() {
  for (;;) {
    const size_t end = rest_.find('\n', begin_);
    if (end != std::string::npos) {
      std::string line = rest_.substr(begin_, end - begin_);
      begin_ = end + 1;
      co_return line;
    }
    rest_.erase(0, begin_);
    begin_ = 0;
    if (over_) break;
    auto piece = co_await stream_->read();
    if (!piece) co_return fail(std::move(piece.error()));
    over_ = piece->empty();
    rest_ += *piece;
  }
  if (rest_.empty()) co_return std::optional<std::string>();
  co_return std::exchange(rest_, "");
}

}  // namespace grapnel::cli
