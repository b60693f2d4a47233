#include "local/node/shim_image.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "base/fd.h"

__asm__(
    ".section .rodata\n"
    ".balign 16\n"
    "grapnel_shim_begin:\n"
    ".incbin \"" GRAPNEL_SHIM_FILE
    "\"\n"
    "grapnel_shim_end:\n"
    ".byte 0\n"
    ".previous\n");

extern "C" {
extern const char grapnel_shim_begin[];
extern const char grapnel_shim_end[];
}

namespace grapnel::local {
namespace {

// FNV-1a: only tells versions apart; nobody attacks us with our own bytes.
uint64_t hash_of(std::string_view bytes) {
  uint64_t hash = 0xcbf29ce484222325U;
  for (const char c : bytes) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3U;
  return hash;
}

bool write_file(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t done = write(fd, bytes.data(), bytes.size());
    if (done < 0 && errno == EINTR) continue;
    if (done <= 0) return false;
    bytes.remove_prefix(static_cast<size_t>(done));
  }
  return true;
}

}  // namespace

std::string_view shim_image() {
  return {grapnel_shim_begin, static_cast<size_t>(grapnel_shim_end - grapnel_shim_begin)};
}

Result<std::string> install_shim(const std::string& directory) {
  const std::string_view image = shim_image();
  const std::string path = fmt::format("{}/grapnel-shim-{:016x}", directory, hash_of(image));
  struct stat info{};
  if (stat(path.c_str(), &info) == 0 && static_cast<size_t>(info.st_size) == image.size()) {
    return path;
  }
  const std::string temporary = fmt::format("{}.{}", path, getpid());
  {
    const Fd fd(open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0700));
    if (!fd || !write_file(fd.get(), image)) {
      return fail(Reason::kSystem, "writing {}: {}", temporary, strerror(errno));
    }
  }
  if (rename(temporary.c_str(), path.c_str()) != 0) {
    return fail(Reason::kSystem, "renaming {}: {}", temporary, strerror(errno));
  }
  return path;
}

}  // namespace grapnel::local
