// The frames of a watch: one JSON text on each line, arriving in chunks that may end anywhere.
#pragma once

#include <absl/functional/function_ref.h>

#include <string>
#include <string_view>

#include "base/result.h"

namespace grapnel {

class LineSplitter {
 public:
  explicit LineSplitter(size_t max_line = size_t{64} << 20) : max_line_(max_line) {}

  // Calls f with each line that is now whole, without its end; empty lines are left out. The text
  // is valid during the call only. An error that f returns ends the call; what was fed after that
  // line is gone.
  Result<> feed(std::string_view chunk, absl::FunctionRef<Result<>(std::string_view line)> f);
  // At the end of the stream: an error when a line was cut off.
  Result<> finish() const;

 private:
  size_t max_line_;
  std::string begin_;  // of a line whose end has not come yet
};

}  // namespace grapnel
