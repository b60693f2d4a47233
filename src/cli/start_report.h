// What a laptop cluster in the background tells the command that started it, through a pipe: its
// warnings, then that it serves, or why it does not.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/fd.h"
#include "base/result.h"
#include "base/time.h"

namespace grapnel::cli {

// The cluster's end. Without a pipe it tells nobody.
class StartReporter {
 public:
  explicit StartReporter(int fd);
  void warn(const std::string& text);
  // The last words.
  void ready();
  void failed(const std::string& why);

 private:
  void say(const std::string& what, const std::string& text);
  Fd pipe_;
};

struct StartReport {
  std::vector<std::string> warnings;
  bool ready = false;
  std::string failure;  // "" and not ready: it ended without a word
};

// The other end: all up to the last words, or to the end of the pipe. An Error when they do not
// come in time.
Result<StartReport> read_start_report(int fd, Duration longest);

}  // namespace grapnel::cli
