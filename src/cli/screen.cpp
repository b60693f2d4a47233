#include "cli/screen.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/strings.h"

namespace grapnel::cli {
namespace {

bool begins_character(char byte) {
  return (byte & 0xC0) != 0x80;
}

}  // namespace

std::string cut(std::string_view line, size_t width) {
  const auto characters = static_cast<size_t>(std::ranges::count_if(line, begins_character));
  if (characters <= width) return std::string(line);
  size_t end = 0;
  for (size_t left = width - 1; end < line.size(); ++end) {
    if (!begins_character(line[end])) continue;
    if (left == 0) break;
    --left;
  }
  return std::string(line.substr(0, end)) + "…";
}

std::string fitted(std::string_view picture, const TerminalSize& size) {
  auto lines = split(picture, '\n');
  if (!lines.empty() && lines.back().empty()) lines.pop_back();
  const auto width = static_cast<size_t>(std::max(size.width, 2));
  const auto most = static_cast<size_t>(std::max(size.height, 3)) - 1;  // the cursor has the last
  std::string out;
  const size_t shown = lines.size() <= most ? lines.size() : most - 1;
  for (size_t i = 0; i < shown; ++i) out += cut(lines[i], width) + "\n";
  if (shown < lines.size()) {
    out += cut(fmt::format("… and {} more lines", lines.size() - shown), width) + "\n";
  }
  return out;
}

void Screen::show(const std::string& picture, const std::optional<TerminalSize>& size) {
  const std::string text = size ? fitted(picture, *size) : picture;
  if (text == shown_) return;
  std::string drawn;
  if (size) {
    const auto lines = std::ranges::count(shown_, '\n');
    if (lines > 0) drawn = fmt::format("\x1b[{}A\x1b[J", lines);
  } else if (!shown_.empty()) {
    drawn = "\n";
  }
  drawn += text;
  std::fwrite(drawn.data(), 1, drawn.size(), out_);
  std::fflush(out_);
  shown_ = text;
}

}  // namespace grapnel::cli
