// A container's log in the line format that the kubelet, and so every log collector, knows:
//   2026-11-15T08:26:26.123456789Z stdout F text
// P instead of F: the line goes on in the next one, or has no end. Rotated by size: 0.log, 0.log.1
// (newer), 0.log.2 …
#pragma once

#include <cstddef>
#include <cstdint>

#include "local/node/shim/util.h"

namespace grapnel::local::shim {

class LogFile {
 public:
  LogFile() = default;
  LogFile(const LogFile&) = delete;
  LogFile& operator=(const LogFile&) = delete;
  ~LogFile();
  // No path: what is written is dropped.
  bool open(std::string_view path, uint64_t max_bytes, uint64_t max_files);
  void add_line(const char* stream, bool whole, const char* text, size_t size);
  // Writes to the file what was added. A full disk loses lines, but never blocks the container.
  void flush();

 private:
  void rotate();
  char* path_ = nullptr;
  int fd_ = -1;
  uint64_t size_ = 0;
  uint64_t max_bytes_ = 0;
  uint64_t max_files_ = 0;
};

// Cuts one stream of a container into lines.
class LogStream {
 public:
  LogStream(LogFile& file, const char* name) : file_(file), name_(name) {}
  LogStream(const LogStream&) = delete;
  LogStream& operator=(const LogStream&) = delete;
  ~LogStream() { std::free(line_); }
  void add(const char* bytes, size_t count);
  void end();  // the last line may lack its newline

 private:
  static constexpr size_t kLongestLine = 16 * 1024;
  LogFile& file_;
  const char* name_;
  char* line_ = nullptr;  // only while a line is incomplete
  size_t used_ = 0;
};

}  // namespace grapnel::local::shim
