#include "local/kubelet/log_reader.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <utility>

#include "base/result.h"
#include "base/strings.h"

namespace grapnel::local::kubelet {
namespace {

constexpr size_t kPiece = 64UL << 10;
constexpr int kMostRotated = 100;

Fd open_file(const std::string& path) {
  return Fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
}

std::string read_at(int fd, uint64_t offset, size_t most) {
  std::string out(most, '\0');
  const ssize_t count = pread(fd, out.data(), most, static_cast<off_t>(offset));
  out.resize(count > 0 ? static_cast<size_t>(count) : 0);
  return out;
}

uint64_t size_of(int fd) {
  struct stat info{};
  return fstat(fd, &info) == 0 ? static_cast<uint64_t>(info.st_size) : 0;
}

bool is_same_file(int fd, const std::string& path) {
  struct stat ours{};
  struct stat there{};
  return fstat(fd, &ours) == 0 && stat(path.c_str(), &there) == 0 && ours.st_ino == there.st_ino &&
         ours.st_dev == there.st_dev;
}

// Where the last `lines` whole lines of a file begin; takes off what was found.
uint64_t tail_offset(int fd, int64_t& lines) {
  uint64_t end = size_of(fd);
  bool at_end = true;
  while (end > 0) {
    const uint64_t start = end > kPiece ? end - kPiece : 0;
    const std::string piece = read_at(fd, start, static_cast<size_t>(end - start));
    for (size_t i = piece.size(); i-- > 0;) {
      if (piece[i] != '\n') {
        at_end = false;
        continue;
      }
      if (!at_end && --lines == 0) return start + i + 1;
      at_end = false;
    }
    end = start;
  }
  if (!at_end) --lines;
  return 0;
}

}  // namespace

std::optional<LogLine> parse_log_line(std::string_view line) {
  LogLine out;
  const auto word = [&]() -> std::string_view {
    const size_t space = line.find(' ');
    if (space == std::string_view::npos) return {};
    const auto found = line.substr(0, space);
    line.remove_prefix(space + 1);
    return found;
  };
  out.stamp = word();
  out.stream = word();
  const auto tag = word();
  if (out.stamp.empty() || out.stream.empty() || tag.empty()) return std::nullopt;
  out.is_whole = tag.front() == 'F';
  out.text = line;
  return out;
}

std::string LogFormatter::add(std::string_view bytes) {
  std::string out;
  rest_ += bytes;
  size_t start = 0;
  for (size_t end = rest_.find('\n'); end != std::string::npos && !is_full();
       end = rest_.find('\n', start)) {
    add_line(std::string_view(rest_).substr(start, end - start), out);
    start = end + 1;
  }
  rest_.erase(0, start);
  return out;
}

void LogFormatter::add_line(std::string_view text, std::string& out) {
  const auto line = parse_log_line(text);
  if (!line) return;
  const bool goes_on = std::exchange(is_inside_line_, !line->is_whole);
  if (!goes_on) {
    const auto time = filter_.since ? parse_time(line->stamp) : std::nullopt;
    is_passed_over_ = time && *time < *filter_.since;
  }
  if (is_passed_over_) return;
  const size_t before = out.size();
  if (filter_.timestamps && !goes_on) out += fmt::format("{} ", line->stamp);
  out += line->text;
  if (line->is_whole) out += '\n';
  written_ += static_cast<int64_t>(out.size() - before);
  if (filter_.limit_bytes && written_ > *filter_.limit_bytes) {
    out.resize(out.size() - static_cast<size_t>(written_ - *filter_.limit_bytes));
  }
}

LogFiles::LogFiles(std::string path, const LogFilter& filter) : path_(std::move(path)) {
  open_parts();
  if (filter.tail_lines) skip_to_tail(*filter.tail_lines);
}

void LogFiles::open_parts() {
  for (int i = 1; i < kMostRotated; ++i) {
    Fd fd = open_file(fmt::format("{}.{}", path_, i));
    if (!fd) break;
    parts_.insert(parts_.begin(), Part{.fd = std::move(fd)});
  }
  if (Fd fd = open_file(path_)) parts_.push_back({.fd = std::move(fd)});
}

void LogFiles::skip_to_tail(int64_t lines) {
  for (size_t i = parts_.size(); i-- > 0;) {
    Part& part = parts_[i];
    if (lines <= 0) {
      part.offset = size_of(part.fd.get());
      continue;
    }
    part.offset = tail_offset(part.fd.get(), lines);
  }
}

std::string LogFiles::read() {
  for (;;) {
    while (!parts_.empty()) {
      Part& part = parts_.front();
      std::string bytes = read_at(part.fd.get(), part.offset, kPiece);
      part.offset += bytes.size();
      if (!bytes.empty()) return bytes;
      if (parts_.size() == 1) break;
      parts_.erase(parts_.begin());
    }
    if (!open_newer()) return "";
  }
}

// The file was rotated while we read it: what came after it is in the files with higher numbers.
bool LogFiles::open_newer() {
  if (parts_.empty()) {
    Fd fd = open_file(path_);
    if (fd) parts_.push_back({.fd = std::move(fd)});
    return !parts_.empty();
  }
  if (is_same_file(parts_.front().fd.get(), path_)) return false;
  std::vector<Part> newer;
  if (Fd fd = open_file(path_)) newer.push_back({.fd = std::move(fd)});
  for (int i = 1; i < kMostRotated; ++i) {
    const std::string older = fmt::format("{}.{}", path_, i);
    if (is_same_file(parts_.front().fd.get(), older)) break;
    Fd fd = open_file(older);
    if (!fd) break;
    newer.insert(newer.begin(), Part{.fd = std::move(fd)});
  }
  // Between rename and open the writer may have added to the old file: read it to its end again.
  if (size_of(parts_.front().fd.get()) > parts_.front().offset) {
    newer.insert(newer.begin(), std::move(parts_.front()));
  }
  if (newer.empty()) return false;
  parts_ = std::move(newer);
  return true;
}

std::string log_tail(const std::string& path, int64_t lines, size_t bytes) {
  const LogFilter filter{.tail_lines = lines};
  LogFiles files(path, filter);
  LogFormatter formatter(filter);
  std::string out;
  for (std::string piece = files.read(); !piece.empty(); piece = files.read()) {
    out += formatter.add(piece);
    if (out.size() > bytes) out.erase(0, out.size() - bytes);
  }
  return out;
}

}  // namespace grapnel::local::kubelet
