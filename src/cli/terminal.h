// The person's end of a command that runs elsewhere: standard input on the loop, the terminal's
// size, and a terminal that leaves every key to the command.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/async.h"
#include "base/result.h"

namespace grapnel::cli {

struct TerminalSize {
  int width = 0;
  int height = 0;
  bool operator==(const TerminalSize&) const = default;
};
// Of the terminal that this is; nothing: it is none.
std::optional<TerminalSize> terminal_size(int fd);
// It is a terminal, and nobody asked for plain text ($NO_COLOR, TERM=dumb).
bool takes_colours(int fd);

// Keys reach the program one by one and unseen, Ctrl-C among them, for as long as it lives.
class RawTerminal {
 public:
  RawTerminal();
  ~RawTerminal();
  RawTerminal(const RawTerminal&) = delete;
  RawTerminal& operator=(const RawTerminal&) = delete;

 private:
  struct Saved;
  std::unique_ptr<Saved> saved_;
};

class StandardInput {
 public:
  explicit StandardInput(Executor executor);
  ~StandardInput();
  Task<Result<std::string>> read();  // empty at the end

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// Tells that the terminal has another size.
class Resizes {
 public:
  explicit Resizes(Executor executor);
  ~Resizes();
  Task<> next();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// All of it, now: whoever reads slowly holds us up, and what we read from in turn.
Result<> write_all(int fd, std::string_view data);

}  // namespace grapnel::cli
