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

// Cuts a stream of pieces into lines; what is left at the end is one, too.
class LineBuffer {
 public:
  template <class F>
  void add(std::string_view piece, F&& each) {
    rest_ += piece;
    size_t begin = 0;
    for (size_t end; (end = rest_.find('\n', begin)) != std::string::npos; begin = end + 1) {
      each(std::string_view(rest_).substr(begin, end - begin));
    }
    rest_.erase(0, begin);
  }
  template <class F>
  void finish(F&& each) {
    if (!rest_.empty()) each(std::string_view(rest_));
    rest_.clear();
  }

 private:
  std::string rest_;
};

}  // namespace grapnel::cli
