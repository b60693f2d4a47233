#include "cli/log_printer.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace grapnel::cli {
namespace {

// Colours that can be told apart on light and dark grounds.
constexpr std::array kColours{"36", "33", "35", "32", "34", "31",
                              "96", "93", "95", "92", "94", "91"};

}  // namespace

void LogPrinter::line(std::string_view source, int rank, std::string_view text) {
  widest_ = std::max(widest_, source.size());
  const std::string prefix = fmt::format("{:<{}} | ", source, widest_);
  const std::string shown =
      colours_ ? fmt::format("\x1b[{}m{}\x1b[0m{}\n",
                             kColours[static_cast<size_t>(rank) % kColours.size()], prefix, text)
               : fmt::format("{}{}\n", prefix, text);
  std::fwrite(shown.data(), 1, shown.size(), out_);
  std::fflush(out_);
}

void LogPrinter::note(std::string_view text) {
  const std::string shown =
      colours_ ? fmt::format("\x1b[1m{}\x1b[0m\n", text) : fmt::format("{}\n", text);
  std::fwrite(shown.data(), 1, shown.size(), out_);
  std::fflush(out_);
}

}  // namespace grapnel::cli
