// A picture that is drawn over and over: over itself on a terminal, below itself elsewhere.
#pragma once

#include <cstdio>
#include <optional>
#include <string>
#include <string_view>

#include "cli/terminal.h"

namespace grapnel::cli {

// A line that is no wider, in characters; what is left out is marked.
std::string cut(std::string_view line, size_t width);
// The picture as it fits: no line wider, not as many lines as the terminal has, so that what is
// drawn can be drawn over.
std::string fitted(std::string_view picture, const TerminalSize& size);

class Screen {
 public:
  explicit Screen(std::FILE* out) : out_(out) {}
  // `size`: of the terminal; nothing when it is none. The same picture again is not drawn.
  void show(const std::string& picture, const std::optional<TerminalSize>& size);

 private:
  std::FILE* out_;
  std::string shown_;
};

}  // namespace grapnel::cli
