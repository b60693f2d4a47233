// Lines of many processes on one screen: each with the process's name before it, coloured by rank
// on a terminal, never two lines mixed.
#pragma once

#include <cstdio>
#include <string>
#include <string_view>

namespace grapnel::cli {

class LogPrinter {
 public:
  LogPrinter(std::FILE* out, bool colours) : out_(out), colours_(colours) {}

  // One line without its end.
  void line(std::string_view source, int rank, std::string_view text);
  // A word of our own, between the lines of processes.
  void note(std::string_view text);

 private:
  std::FILE* out_;
  bool colours_;
  size_t widest_ = 0;
};

}  // namespace grapnel::cli
