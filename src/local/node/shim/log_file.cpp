#include "local/node/shim/log_file.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

namespace grapnel::local::shim {
namespace {

// Shared by all logs of the pod: filled and flushed within one turn of the loop.
char g_pending[64 * 1024];
size_t g_pending_size = 0;

// "2026-11-15T08:26:26." of the current second, made once a second.
const char* second_text(time_t second) {
  static time_t last = -1;
  static char text[64];
  if (second != last) {
    tm parts{};
    gmtime_r(&second, &parts);
    snprintf(text, sizeof text, "%04d-%02d-%02dT%02d:%02d:%02d.", parts.tm_year + 1900,
             parts.tm_mon + 1, parts.tm_mday, parts.tm_hour, parts.tm_min, parts.tm_sec);
    last = second;
  }
  return text;
}

size_t stamp(char* into, size_t capacity, const char* stream, bool whole) {
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  const int size = snprintf(into, capacity, "%s%09ldZ %s %c ", second_text(now.tv_sec), now.tv_nsec,
                            stream, whole ? 'F' : 'P');
  return static_cast<size_t>(size);
}

}  // namespace

LogFile::~LogFile() {
  if (fd_ >= 0) close(fd_);
  free(path_);
}

bool LogFile::open(std::string_view path, uint64_t max_bytes, uint64_t max_files) {
  max_bytes_ = max_bytes;
  max_files_ = max_files;
  if (path.empty()) return true;
  path_ = copy_text(path);
  fd_ = ::open(path_, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0640);
  if (fd_ < 0) return failed("opening the log %s", path_);
  struct stat info{};
  if (fstat(fd_, &info) == 0) size_ = static_cast<uint64_t>(info.st_size);
  return true;
}

void LogFile::add_line(const char* stream, bool whole, const char* text, size_t size) {
  if (fd_ < 0) return;
  constexpr size_t kStamp = 64;
  if (g_pending_size + kStamp + size + 1 > sizeof g_pending) flush();
  g_pending_size += stamp(g_pending + g_pending_size, kStamp, stream, whole);
  memcpy(g_pending + g_pending_size, text, size);
  g_pending_size += size;
  g_pending[g_pending_size++] = '\n';
}

void LogFile::flush() {
  if (fd_ >= 0 && g_pending_size != 0) {
    if (max_bytes_ != 0 && size_ != 0 && size_ + g_pending_size > max_bytes_) rotate();
    if (fd_ >= 0 && write_all(fd_, g_pending, g_pending_size)) size_ += g_pending_size;
  }
  g_pending_size = 0;
}

void LogFile::rotate() {
  char from[4096];
  char to[4096];
  const unsigned long kept = max_files_ > 1 ? max_files_ - 1 : 0;
  for (unsigned long i = kept; i > 1; --i) {
    snprintf(from, sizeof from, "%s.%lu", path_, i - 1);
    snprintf(to, sizeof to, "%s.%lu", path_, i);
    rename(from, to);
  }
  snprintf(to, sizeof to, "%s.1", path_);
  if (kept == 0) {
    unlink(path_);
  } else {
    rename(path_, to);
  }
  close(fd_);
  fd_ = ::open(path_, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0640);
  size_ = 0;
}

void LogStream::add(const char* bytes, size_t count) {
  while (count != 0) {
    const char* newline = static_cast<const char*>(memchr(bytes, '\n', count));
    const size_t until = newline != nullptr ? static_cast<size_t>(newline - bytes) : count;
    const size_t room = kLongestLine - used_;
    const size_t take = until < room ? until : room;
    const bool ends = newline != nullptr && take == until;
    if (ends && used_ == 0) {
      file_.add_line(name_, true, bytes, take);
    } else {
      if (line_ == nullptr) line_ = static_cast<char*>(malloc(kLongestLine));
      if (line_ == nullptr) _exit(70);
      memcpy(line_ + used_, bytes, take);
      used_ += take;
      if (ends || used_ == kLongestLine) {
        file_.add_line(name_, ends, line_, used_);
        used_ = 0;
      }
    }
    const size_t done = take + (ends ? 1 : 0);
    bytes += done;
    count -= done;
  }
  if (used_ == 0 && line_ != nullptr) {
    free(line_);
    line_ = nullptr;
  }
}

void LogStream::end() {
  if (used_ != 0) file_.add_line(name_, false, line_, used_);  // as containerd has it
  free(line_);
  line_ = nullptr;
  used_ = 0;
}

}  // namespace grapnel::local::shim
