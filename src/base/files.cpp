#include "base/files.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

namespace grapnel {
namespace {

struct Closing {
  int fd;
  ~Closing() { ::close(fd); }
};

Failure failed(int error) {
  std::string why = std::strerror(error);
  if (!why.empty() && why[0] >= 'A' && why[0] <= 'Z') why[0] = static_cast<char>(why[0] + 32);
  const Reason reason = error == ENOENT || error == ENOTDIR ? Reason::kNotFound : Reason::kSystem;
  return fail(Error{.reason = reason, .message = std::move(why)});
}

}  // namespace

Result<std::string> read_file(const std::string& path, size_t limit) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return failed(errno);
  const Closing closing{fd};
  std::string text;
  std::array<char, 65536> buffer{};
  for (;;) {
    const ssize_t count = ::read(fd, buffer.data(), buffer.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return failed(errno);
    if (count == 0) return text;
    if (text.size() + static_cast<size_t>(count) > limit) {
      return fail(Reason::kSystem, "longer than {} bytes", limit);
    }
    text.append(buffer.data(), static_cast<size_t>(count));
  }
}

}  // namespace grapnel
