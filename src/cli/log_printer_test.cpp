#include "cli/log_printer.h"

#include <gtest/gtest.h>

#include <cstdlib>

namespace grapnel::cli {
namespace {

// Both streams on one screen.
std::string printed(LogPrinterOptions options, const std::function<void(LogPrinter&)>& say) {
  char* text = nullptr;
  size_t length = 0;
  std::FILE* out = ::open_memstream(&text, &length);
  options.out = options.notes = out;
  LogPrinter printer(options);
  say(printer);
  std::fclose(out);
  std::string result(text, length);
  std::free(text);
  return result;
}

void a_run(LogPrinter& printer) {
  printer.progress("train: Pending (0 of 2 processes are up)");
  printer.progress("train: Starting (1 of 2 processes are up)");
  printer.line("worker-0", 0, "hello");
  printer.line("worker-10", 10, "");
  printer.progress("train: Running (2 of 2 processes are up)");
  printer.line("worker-0", 0, "bye");
  printer.note("train: Succeeded");
}

TEST(LogPrinter, PipedItIsPlainLines) {
  EXPECT_EQ(printed({}, a_run),
            "train: Pending (0 of 2 processes are up)\n"
            "train: Starting (1 of 2 processes are up)\n"
            "worker-0 | hello\n"
            "worker-10 | \n"
            "train: Running (2 of 2 processes are up)\n"
            "worker-0  | bye\n"
            "train: Succeeded\n");
}

TEST(LogPrinter, OnATerminalProgressTakesItsOwnPlace) {
  EXPECT_EQ(printed({.colours = true, .bold = true, .terminal = TerminalSize{80, 24}}, a_run),
            "\x1b[1mtrain: Pending (0 of 2 processes are up)\x1b[0m\n"
            "\x1b[1A\x1b[2K\x1b[1mtrain: Starting (1 of 2 processes are up)\x1b[0m\n"
            "\x1b[36mworker-0 | \x1b[0mhello\n"
            "\x1b[94mworker-10 | \x1b[0m\n"
            "\x1b[1mtrain: Running (2 of 2 processes are up)\x1b[0m\n"
            "\x1b[36mworker-0  | \x1b[0mbye\n"
            "\x1b[1mtrain: Succeeded\x1b[0m\n");
}

TEST(LogPrinter, ProgressFitsOneLine) {
  EXPECT_EQ(printed({.terminal = TerminalSize{10, 24}},
                    [](LogPrinter& printer) { printer.progress("much too long"); }),
            "much too …\n");
}

}  // namespace
}  // namespace grapnel::cli
