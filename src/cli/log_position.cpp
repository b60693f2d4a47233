#include "cli/log_position.h"

#include <algorithm>

namespace grapnel::cli {
namespace {

// Times of one form compare as texts do up to their fraction, whose trailing zeros Go leaves out:
// "…:05.1Z" is before "…:05.12Z" although 'Z' comes after '2'.
std::string_view comparable(std::string_view line) {
  const auto time = line.substr(0, line.find(' '));
  return time.ends_with('Z') ? time.substr(0, time.size() - 1) : time;
}

}  // namespace

bool is_before(std::string_view line, std::string_view other) {
  return comparable(line) < comparable(other);
}

std::optional<std::string_view> LogPosition::take(std::string_view line) {
  const auto time = line.substr(0, line.find(' '));
  if (!parse_time(time)) return line;  // a server that gives no times
  const auto text = line.substr(std::min(time.size() + 1, line.size()));
  if (is_catching_up_) {
    if (is_before(time, last_)) return std::nullopt;
    if (time == last_ && again_ < count_) {
      ++again_;
      return std::nullopt;
    }
    is_catching_up_ = false;
  }
  count_ = time == last_ ? count_ + 1 : 1;
  last_ = time;
  return text;
}

void LogPosition::reopen() {
  is_catching_up_ = !last_.empty();
  again_ = 0;
}

std::optional<Time> LogPosition::since() const {
  return parse_time(last_);
}

}  // namespace grapnel::cli
