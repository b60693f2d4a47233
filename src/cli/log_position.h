// Where a reader of a log stands, by the times of its lines: so it can go on after its connection
// was cut, and prints each line once.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/time.h"

namespace grapnel::cli {

// Whether one line of a log is older than another, by the RFC 3339 times they begin with.
bool is_before(std::string_view line, std::string_view other);

class LogPosition {
 public:
  // A line with its time before it, as servers give it with `timestamps`. Its text alone; nothing
  // when it was read before.
  std::optional<std::string_view> take(std::string_view line);
  // The log is read again, from since() on or from an earlier line.
  void reopen();
  std::optional<Time> since() const;  // nothing: no line was read yet

 private:
  std::string last_;  // the time of the last line
  size_t count_ = 0;  // lines of that very time
  bool is_catching_up_ = false;
  size_t again_ = 0;  // of those lines, the ones that came again
};

}  // namespace grapnel::cli
