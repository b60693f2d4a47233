// Lines of many processes on one screen: each with the process's name before it, coloured by rank
// on a terminal, never two lines mixed; and between them words of our own, on another stream.
#pragma once

#include <cstdio>
#include <optional>
#include <string>
#include <string_view>

#include "cli/terminal.h"

namespace grapnel::cli {

struct LogPrinterOptions {
  std::FILE* out = stdout;
  bool colours = false;
  std::FILE* notes = stderr;
  bool bold = false;
  // Of the terminal that shows the notes; nothing: none does.
  std::optional<TerminalSize> terminal = {};
};

class LogPrinter {
 public:
  explicit LogPrinter(LogPrinterOptions options) : options_(options) {}
  // On standard output and standard error, as they are.
  static LogPrinter of_process();

  // One line without its end.
  void line(std::string_view source, int rank, std::string_view text);
  void note(std::string_view text);
  // A note that on a terminal takes the place of the one before it, while nothing else was said.
  void progress(std::string_view text);

 private:
  LogPrinterOptions options_;
  size_t widest_ = 0;
  bool may_replace_ = false;  // the last thing said was progress
};

}  // namespace grapnel::cli
