// Reads a container's log files: lines in the format of local/node/shim/log_file.h, over several
// files where the log was rotated.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/fd.h"
#include "base/time.h"

namespace grapnel::local::kubelet {

struct LogLine {
  std::string_view stamp;
  std::string_view stream;
  bool is_whole = true;  // false: it goes on in the next one
  std::string_view text;
};
// Without its newline. Nothing: not a line of a log.
std::optional<LogLine> parse_log_line(std::string_view line);

struct LogFilter {
  bool timestamps = false;
  std::optional<int64_t> tail_lines;
  std::optional<Time> since;
  std::optional<int64_t> limit_bytes;
};

// Turns lines of a log into the text that a reader sees, piece by piece.
class LogFormatter {
 public:
  explicit LogFormatter(LogFilter filter) : filter_(std::move(filter)) {}
  // The text for further bytes of a file; an incomplete line is kept for the next call.
  std::string add(std::string_view bytes);
  bool is_full() const { return filter_.limit_bytes && written_ >= *filter_.limit_bytes; }

 private:
  void add_line(std::string_view line, std::string& out);
  LogFilter filter_;
  std::string rest_;
  bool is_inside_line_ = false;
  bool is_passed_over_ = false;
  int64_t written_ = 0;
};

// Follows one attempt's log from its oldest file on, across rotations.
class LogFiles {
 public:
  // `tail_lines` of the filter decides where it begins.
  LogFiles(std::string path, const LogFilter& filter);
  // The next bytes; empty: no more for now.
  std::string read();

 private:
  struct Part {
    Fd fd;
    uint64_t offset = 0;
  };
  void open_parts();
  void skip_to_tail(int64_t lines);
  bool open_newer();

  std::string path_;
  std::vector<Part> parts_;  // the oldest first; the last is still written to
};

// The last lines of a log, at most this many bytes.
std::string log_tail(const std::string& path, int64_t lines, size_t bytes);

}  // namespace grapnel::local::kubelet
