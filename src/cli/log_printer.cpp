#include "cli/log_printer.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>

#include "cli/screen.h"

namespace grapnel::cli {
namespace {

// Colours that can be told apart on light and dark grounds.
constexpr std::array kColours{"36", "33", "35", "32", "34", "31",
                              "96", "93", "95", "92", "94", "91"};

void write(std::FILE* out, const std::string& text) {
  std::fwrite(text.data(), 1, text.size(), out);
  std::fflush(out);
}

std::string shown_note(std::string_view text, bool bold) {
  return bold ? fmt::format("\x1b[1m{}\x1b[0m\n", text) : fmt::format("{}\n", text);
}

}  // namespace

LogPrinter LogPrinter::of_process() {
  return LogPrinter({.colours = takes_colours(STDOUT_FILENO),
                     .bold = takes_colours(STDERR_FILENO),
                     .terminal = terminal_size(STDERR_FILENO)});
}

void LogPrinter::line(std::string_view source, int rank, std::string_view text) {
  widest_ = std::max(widest_, source.size());
  const std::string prefix = fmt::format("{:<{}} | ", source, widest_);
  write(options_.out,
        options_.colours
            ? fmt::format("\x1b[{}m{}\x1b[0m{}\n",
                          kColours[static_cast<size_t>(rank) % kColours.size()], prefix, text)
            : fmt::format("{}{}\n", prefix, text));
  may_replace_ = false;
}

void LogPrinter::note(std::string_view text) {
  write(options_.notes, shown_note(text, options_.bold));
  may_replace_ = false;
}

void LogPrinter::progress(std::string_view text) {
  if (!options_.terminal) {
    note(text);
    return;
  }
  // One line on the screen, or it could not be taken back.
  const std::string line = cut(text, static_cast<size_t>(std::max(options_.terminal->width, 2)));
  write(options_.notes, (may_replace_ ? "\x1b[1A\x1b[2K" : "") + shown_note(line, options_.bold));
  may_replace_ = true;
}

}  // namespace grapnel::cli
